// RUN: triton-dist opt --parsing-diagnostics %s | filecheck %s

// CHECK: undefined location alias '#loc9'
module {
} loc(#loc9)
