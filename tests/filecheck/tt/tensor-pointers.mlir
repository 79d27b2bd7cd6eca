// RUN: triton-dist opt %s | filecheck %s

tt.func public @kernel(%p: !tt.ptr<f16>, %i: i32, %w: i64) {
  // CHECK: %b = tt.make_tensor_ptr %p, [%w, %w], [%w, %w], [%i, %i] {order = array<i32: 1, 0>} : !tt.ptr<tensor<4x8xf16>>
  %b = tt.make_tensor_ptr %p, [%w, %w], [%w, %w], [%i, %i] {order = array<i32: 1, 0>} : <tensor<4x8xf16>>
  // CHECK: %a = tt.advance %b, [%i, %i] : !tt.ptr<tensor<4x8xf16>>
  %a = tt.advance %b, [%i, %i] : <tensor<4x8xf16>>
  // CHECK: tt.load %a {boundaryCheck = array<i32: 0, 1>, padding = 2 : i32} : !tt.ptr<tensor<4x8xf16>>
  %x = tt.load %a {boundaryCheck = array<i32: 0, 1>, padding = 2 : i32} : !tt.ptr<tensor<4x8xf16>>
  tt.return
}
