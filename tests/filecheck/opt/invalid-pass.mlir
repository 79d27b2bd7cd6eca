// RUN: not triton-dist opt -p no-such-pass %s 2>&1 | filecheck %s

// CHECK: error: {{.*}}no-such-pass
module {
}
