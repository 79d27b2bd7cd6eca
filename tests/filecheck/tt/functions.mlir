// RUN: triton-dist opt %s | filecheck %s

// CHECK: tt.func public @kernel(%p: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %i: i32) attributes {noinline = false} {
tt.func public @kernel(%p: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %i: i32) attributes {noinline = false} {
  // CHECK: %a, %a_1 = tt.call @helper(%i) : (i32) -> (i32, i32)
  %a:2 = tt.call @helper(%i) : (i32) -> (i32, i32)
  // CHECK: tt.call @nothing() : () -> ()
  tt.call @nothing() : () -> ()
  tt.return
}
// CHECK: tt.func private @helper(%i: i32) -> (i32, i32) attributes {noinline = true} {
tt.func private @helper(%i: i32) -> (i32, i32) attributes {noinline = true} {
  // CHECK: tt.return %i, %i : i32, i32
  tt.return %i, %i : i32, i32
}
// CHECK: tt.func private @nothing(){{$}}
tt.func private @nothing()
