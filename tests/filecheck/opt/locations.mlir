// RUN: triton-dist opt --print-debuginfo %s | filecheck %s
// Aliases may follow the module that uses them, as libtriton prints them; they come out before their users.

// CHECK: tt.func public @kernel(%p: !tt.ptr<i32> loc(#[[P:loc[0-9]*]]), %q: i32 loc(unknown)) {
// CHECK-NEXT: tt.store %p, %q : !tt.ptr<i32> loc(#[[S:loc[0-9]*]])
// CHECK: #[[F:loc[0-9]*]] = loc("kernel.py":1:1)
// CHECK: #[[P]] = loc("p"(#[[F]]))
// CHECK: #[[S]] = loc(callsite(#loc{{[0-9]*}} at #loc{{[0-9]*}}))
tt.func public @kernel(%p: !tt.ptr<i32> loc(#loc1), %q: i32 loc(unknown)) {
  tt.store %p, %q : !tt.ptr<i32> loc(#loc2)
  tt.return loc("kernel.py":9:1)
} loc(#loc)
#loc = loc("kernel.py":1:1)
#loc1 = loc("p"(#loc))
#loc2 = loc(callsite("library.py":7:2 at #loc3))
#loc3 = loc("kernel.py":4:5)
