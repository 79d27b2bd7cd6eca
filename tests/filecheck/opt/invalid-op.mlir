// RUN: triton-dist opt --parsing-diagnostics %s | filecheck %s

// CHECK: Operation tt.no_such_op is not registered
tt.no_such_op
