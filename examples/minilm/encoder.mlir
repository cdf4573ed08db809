// all-MiniLM-L6-v2: six BERT layers, mean pooling, unit length. Views stand on inputs
// and weights only: heads, the hidden layer of the MLP and the features of the word
// table are split over tp, by head where heads may not divide (12 heads on 5 devices:
// 3, 3, 3, 3, 0).
// Shapes: b sentences, s tokens; 384 features, 12 heads of 32, 1536 hidden.

#m = #tv.mesh<tp = 4>

!ids = tensor<?x?xi32, #tv.view<#m, [_, _]>>
!mask = tensor<?x?xf32, #tv.view<#m, [_, _]>>
!words = tensor<30522x384xf32, #tv.view<#m, [_, did(tp) * _]>>
!positions = tensor<512x384xf32, #tv.view<#m, [_, _]>>
!types = tensor<2x384xf32, #tv.view<#m, [_, _]>>
!vec = tensor<384xf32, #tv.view<#m, [_]>>
!heads_w = tensor<384x384xf32, #tv.view<#m, [(did(tp) * _ | 12) * 32, _]>>
!heads_b = tensor<384xf32, #tv.view<#m, [(did(tp) * _ | 12) * 32]>>
!out_w = tensor<384x384xf32, #tv.view<#m, [_, (did(tp) * _ | 12) * 32]>>
!up_w = tensor<1536x384xf32, #tv.view<#m, [did(tp) * _, _]>>
!up_b = tensor<1536xf32, #tv.view<#m, [did(tp) * _]>>
!down_w = tensor<384x1536xf32, #tv.view<#m, [_, did(tp) * _]>>

!x = tensor<?x?x384xf32>
!split = tensor<?x?x12x32xf32>
!head = tensor<?x12x?x32xf32>

// [b, s, 384] to [b, 12, s, 32].
func.func private @heads(%x: !x, %w: !heads_w, %bias: !heads_b) -> !head {
  %0 = tv.linear %x, %w bias %bias : (!x, !heads_w, !heads_b) -> !x
  %1 = tv.reshape %0 : (!x) -> !split
  %2 = tv.transpose %1 perm [0, 2, 1, 3] : (!split) -> !head
  return %2 : !head
}

func.func private @layer(%x: !x, %mask: !mask,
                         %qw: !heads_w, %qb: !heads_b, %kw: !heads_w, %kb: !heads_b,
                         %vw: !heads_w, %vb: !heads_b, %ow: !out_w, %ob: !vec,
                         %g1: !vec, %b1: !vec, %uw: !up_w, %ub: !up_b,
                         %dw: !down_w, %db: !vec, %g2: !vec, %b2: !vec) -> !x {
  %q = call @heads(%x, %qw, %qb) : (!x, !heads_w, !heads_b) -> !head
  %k = call @heads(%x, %kw, %kb) : (!x, !heads_w, !heads_b) -> !head
  %v = call @heads(%x, %vw, %vb) : (!x, !heads_w, !heads_b) -> !head
  %a, %lse = tv.attention %q, %k, %v scale(0.17677669529663687)
      : (!head, !head, !head) -> (!head, tensor<?x12x?xf32>)
    mask_mod (%b: index, %h: index, %qi: index, %ki: index) {
      %keep = tv.load %mask[%b, %ki] : !mask -> f32
      %half = arith.constant 0.5 : f32
      %m = arith.cmpf ogt, %keep, %half : f32
      tv.yield %m : i1
    }
  %t = tv.transpose %a perm [0, 2, 1, 3] : (!head) -> !split
  %r = tv.reshape %t : (!split) -> !x
  %o = tv.linear %r, %ow bias %ob : (!x, !out_w, !vec) -> !x
  %s1 = tv.add %o, %x : (!x, !x) -> !x
  %n1 = tv.layer_norm %s1, %g1, %b1 epsilon(1.0e-12) : (!x, !vec, !vec) -> !x
  %u = tv.linear %n1, %uw bias %ub : (!x, !up_w, !up_b) -> tensor<?x?x1536xf32>
  %g = tv.gelu %u : (tensor<?x?x1536xf32>) -> tensor<?x?x1536xf32>
  %d = tv.linear %g, %dw bias %db : (tensor<?x?x1536xf32>, !down_w, !vec) -> !x
  %s2 = tv.add %d, %n1 : (!x, !x) -> !x
  %n2 = tv.layer_norm %s2, %g2, %b2 epsilon(1.0e-12) : (!x, !vec, !vec) -> !x
  return %n2 : !x
}

// The mean over the tokens that the mask keeps, scaled to length 1.
func.func private @pool(%x: !x, %mask: !mask) -> tensor<?x384xf32> {
  %wide = tv.broadcast %mask dims [0, 1] like %x : (!mask, !x) -> !x
  %kept = tv.mul %x, %wide : (!x, !x) -> !x
  %sum = tv.reduce sum %kept dims [1] : (!x) -> tensor<?x384xf32>
  %count = tv.reduce sum %mask dims [1] : (!mask) -> tensor<?xf32>
  %counts = tv.broadcast %count dims [0] like %sum : (tensor<?xf32>, tensor<?x384xf32>) -> tensor<?x384xf32>
  %mean = tv.map %sum, %counts : (tensor<?x384xf32>, tensor<?x384xf32>) -> tensor<?x384xf32>
    (%a: f32, %c: f32) {
      %floor = arith.constant 1.0e-9 : f32
      %n = arith.maximumf %c, %floor : f32
      %q = arith.divf %a, %n : f32
      tv.yield %q : f32
    }
  %squares = tv.mul %mean, %mean : (tensor<?x384xf32>, tensor<?x384xf32>) -> tensor<?x384xf32>
  %square = tv.reduce sum %squares dims [1] : (tensor<?x384xf32>) -> tensor<?xf32>
  %lengths = tv.broadcast %square dims [0] like %mean : (tensor<?xf32>, tensor<?x384xf32>) -> tensor<?x384xf32>
  %unit = tv.map %mean, %lengths : (tensor<?x384xf32>, tensor<?x384xf32>) -> tensor<?x384xf32>
    (%a: f32, %l: f32) {
      %r = math.sqrt %l : f32
      %floor = arith.constant 1.0e-12 : f32
      %n = arith.maximumf %r, %floor : f32
      %q = arith.divf %a, %n : f32
      tv.yield %q : f32
    }
  return %unit : tensor<?x384xf32>
}

func.func @main(
    %ids: !ids {tv.name = "ids", tv.dims = ["b", "s"]},
    %mask: !mask {tv.name = "mask", tv.dims = ["b", "s"]},
    %words: !words {tv.name = "embeddings.word_embeddings.weight", tv.role = "weight"},
    %positions: !positions {tv.name = "embeddings.position_embeddings.weight", tv.role = "weight"},
    %types: !types {tv.name = "embeddings.token_type_embeddings.weight", tv.role = "weight"},
    %eg: !vec {tv.name = "embeddings.LayerNorm.weight", tv.role = "weight"},
    %eb: !vec {tv.name = "embeddings.LayerNorm.bias", tv.role = "weight"},
    %qw0: !heads_w {tv.name = "encoder.layer.0.attention.self.query.weight", tv.role = "weight"},
    %qb0: !heads_b {tv.name = "encoder.layer.0.attention.self.query.bias", tv.role = "weight"},
    %kw0: !heads_w {tv.name = "encoder.layer.0.attention.self.key.weight", tv.role = "weight"},
    %kb0: !heads_b {tv.name = "encoder.layer.0.attention.self.key.bias", tv.role = "weight"},
    %vw0: !heads_w {tv.name = "encoder.layer.0.attention.self.value.weight", tv.role = "weight"},
    %vb0: !heads_b {tv.name = "encoder.layer.0.attention.self.value.bias", tv.role = "weight"},
    %ow0: !out_w {tv.name = "encoder.layer.0.attention.output.dense.weight", tv.role = "weight"},
    %ob0: !vec {tv.name = "encoder.layer.0.attention.output.dense.bias", tv.role = "weight"},
    %g1_0: !vec {tv.name = "encoder.layer.0.attention.output.LayerNorm.weight", tv.role = "weight"},
    %b1_0: !vec {tv.name = "encoder.layer.0.attention.output.LayerNorm.bias", tv.role = "weight"},
    %uw0: !up_w {tv.name = "encoder.layer.0.intermediate.dense.weight", tv.role = "weight"},
    %ub0: !up_b {tv.name = "encoder.layer.0.intermediate.dense.bias", tv.role = "weight"},
    %dw0: !down_w {tv.name = "encoder.layer.0.output.dense.weight", tv.role = "weight"},
    %db0: !vec {tv.name = "encoder.layer.0.output.dense.bias", tv.role = "weight"},
    %g2_0: !vec {tv.name = "encoder.layer.0.output.LayerNorm.weight", tv.role = "weight"},
    %b2_0: !vec {tv.name = "encoder.layer.0.output.LayerNorm.bias", tv.role = "weight"},
    %qw1: !heads_w {tv.name = "encoder.layer.1.attention.self.query.weight", tv.role = "weight"},
    %qb1: !heads_b {tv.name = "encoder.layer.1.attention.self.query.bias", tv.role = "weight"},
    %kw1: !heads_w {tv.name = "encoder.layer.1.attention.self.key.weight", tv.role = "weight"},
    %kb1: !heads_b {tv.name = "encoder.layer.1.attention.self.key.bias", tv.role = "weight"},
    %vw1: !heads_w {tv.name = "encoder.layer.1.attention.self.value.weight", tv.role = "weight"},
    %vb1: !heads_b {tv.name = "encoder.layer.1.attention.self.value.bias", tv.role = "weight"},
    %ow1: !out_w {tv.name = "encoder.layer.1.attention.output.dense.weight", tv.role = "weight"},
    %ob1: !vec {tv.name = "encoder.layer.1.attention.output.dense.bias", tv.role = "weight"},
    %g1_1: !vec {tv.name = "encoder.layer.1.attention.output.LayerNorm.weight", tv.role = "weight"},
    %b1_1: !vec {tv.name = "encoder.layer.1.attention.output.LayerNorm.bias", tv.role = "weight"},
    %uw1: !up_w {tv.name = "encoder.layer.1.intermediate.dense.weight", tv.role = "weight"},
    %ub1: !up_b {tv.name = "encoder.layer.1.intermediate.dense.bias", tv.role = "weight"},
    %dw1: !down_w {tv.name = "encoder.layer.1.output.dense.weight", tv.role = "weight"},
    %db1: !vec {tv.name = "encoder.layer.1.output.dense.bias", tv.role = "weight"},
    %g2_1: !vec {tv.name = "encoder.layer.1.output.LayerNorm.weight", tv.role = "weight"},
    %b2_1: !vec {tv.name = "encoder.layer.1.output.LayerNorm.bias", tv.role = "weight"},
    %qw2: !heads_w {tv.name = "encoder.layer.2.attention.self.query.weight", tv.role = "weight"},
    %qb2: !heads_b {tv.name = "encoder.layer.2.attention.self.query.bias", tv.role = "weight"},
    %kw2: !heads_w {tv.name = "encoder.layer.2.attention.self.key.weight", tv.role = "weight"},
    %kb2: !heads_b {tv.name = "encoder.layer.2.attention.self.key.bias", tv.role = "weight"},
    %vw2: !heads_w {tv.name = "encoder.layer.2.attention.self.value.weight", tv.role = "weight"},
    %vb2: !heads_b {tv.name = "encoder.layer.2.attention.self.value.bias", tv.role = "weight"},
    %ow2: !out_w {tv.name = "encoder.layer.2.attention.output.dense.weight", tv.role = "weight"},
    %ob2: !vec {tv.name = "encoder.layer.2.attention.output.dense.bias", tv.role = "weight"},
    %g1_2: !vec {tv.name = "encoder.layer.2.attention.output.LayerNorm.weight", tv.role = "weight"},
    %b1_2: !vec {tv.name = "encoder.layer.2.attention.output.LayerNorm.bias", tv.role = "weight"},
    %uw2: !up_w {tv.name = "encoder.layer.2.intermediate.dense.weight", tv.role = "weight"},
    %ub2: !up_b {tv.name = "encoder.layer.2.intermediate.dense.bias", tv.role = "weight"},
    %dw2: !down_w {tv.name = "encoder.layer.2.output.dense.weight", tv.role = "weight"},
    %db2: !vec {tv.name = "encoder.layer.2.output.dense.bias", tv.role = "weight"},
    %g2_2: !vec {tv.name = "encoder.layer.2.output.LayerNorm.weight", tv.role = "weight"},
    %b2_2: !vec {tv.name = "encoder.layer.2.output.LayerNorm.bias", tv.role = "weight"},
    %qw3: !heads_w {tv.name = "encoder.layer.3.attention.self.query.weight", tv.role = "weight"},
    %qb3: !heads_b {tv.name = "encoder.layer.3.attention.self.query.bias", tv.role = "weight"},
    %kw3: !heads_w {tv.name = "encoder.layer.3.attention.self.key.weight", tv.role = "weight"},
    %kb3: !heads_b {tv.name = "encoder.layer.3.attention.self.key.bias", tv.role = "weight"},
    %vw3: !heads_w {tv.name = "encoder.layer.3.attention.self.value.weight", tv.role = "weight"},
    %vb3: !heads_b {tv.name = "encoder.layer.3.attention.self.value.bias", tv.role = "weight"},
    %ow3: !out_w {tv.name = "encoder.layer.3.attention.output.dense.weight", tv.role = "weight"},
    %ob3: !vec {tv.name = "encoder.layer.3.attention.output.dense.bias", tv.role = "weight"},
    %g1_3: !vec {tv.name = "encoder.layer.3.attention.output.LayerNorm.weight", tv.role = "weight"},
    %b1_3: !vec {tv.name = "encoder.layer.3.attention.output.LayerNorm.bias", tv.role = "weight"},
    %uw3: !up_w {tv.name = "encoder.layer.3.intermediate.dense.weight", tv.role = "weight"},
    %ub3: !up_b {tv.name = "encoder.layer.3.intermediate.dense.bias", tv.role = "weight"},
    %dw3: !down_w {tv.name = "encoder.layer.3.output.dense.weight", tv.role = "weight"},
    %db3: !vec {tv.name = "encoder.layer.3.output.dense.bias", tv.role = "weight"},
    %g2_3: !vec {tv.name = "encoder.layer.3.output.LayerNorm.weight", tv.role = "weight"},
    %b2_3: !vec {tv.name = "encoder.layer.3.output.LayerNorm.bias", tv.role = "weight"},
    %qw4: !heads_w {tv.name = "encoder.layer.4.attention.self.query.weight", tv.role = "weight"},
    %qb4: !heads_b {tv.name = "encoder.layer.4.attention.self.query.bias", tv.role = "weight"},
    %kw4: !heads_w {tv.name = "encoder.layer.4.attention.self.key.weight", tv.role = "weight"},
    %kb4: !heads_b {tv.name = "encoder.layer.4.attention.self.key.bias", tv.role = "weight"},
    %vw4: !heads_w {tv.name = "encoder.layer.4.attention.self.value.weight", tv.role = "weight"},
    %vb4: !heads_b {tv.name = "encoder.layer.4.attention.self.value.bias", tv.role = "weight"},
    %ow4: !out_w {tv.name = "encoder.layer.4.attention.output.dense.weight", tv.role = "weight"},
    %ob4: !vec {tv.name = "encoder.layer.4.attention.output.dense.bias", tv.role = "weight"},
    %g1_4: !vec {tv.name = "encoder.layer.4.attention.output.LayerNorm.weight", tv.role = "weight"},
    %b1_4: !vec {tv.name = "encoder.layer.4.attention.output.LayerNorm.bias", tv.role = "weight"},
    %uw4: !up_w {tv.name = "encoder.layer.4.intermediate.dense.weight", tv.role = "weight"},
    %ub4: !up_b {tv.name = "encoder.layer.4.intermediate.dense.bias", tv.role = "weight"},
    %dw4: !down_w {tv.name = "encoder.layer.4.output.dense.weight", tv.role = "weight"},
    %db4: !vec {tv.name = "encoder.layer.4.output.dense.bias", tv.role = "weight"},
    %g2_4: !vec {tv.name = "encoder.layer.4.output.LayerNorm.weight", tv.role = "weight"},
    %b2_4: !vec {tv.name = "encoder.layer.4.output.LayerNorm.bias", tv.role = "weight"},
    %qw5: !heads_w {tv.name = "encoder.layer.5.attention.self.query.weight", tv.role = "weight"},
    %qb5: !heads_b {tv.name = "encoder.layer.5.attention.self.query.bias", tv.role = "weight"},
    %kw5: !heads_w {tv.name = "encoder.layer.5.attention.self.key.weight", tv.role = "weight"},
    %kb5: !heads_b {tv.name = "encoder.layer.5.attention.self.key.bias", tv.role = "weight"},
    %vw5: !heads_w {tv.name = "encoder.layer.5.attention.self.value.weight", tv.role = "weight"},
    %vb5: !heads_b {tv.name = "encoder.layer.5.attention.self.value.bias", tv.role = "weight"},
    %ow5: !out_w {tv.name = "encoder.layer.5.attention.output.dense.weight", tv.role = "weight"},
    %ob5: !vec {tv.name = "encoder.layer.5.attention.output.dense.bias", tv.role = "weight"},
    %g1_5: !vec {tv.name = "encoder.layer.5.attention.output.LayerNorm.weight", tv.role = "weight"},
    %b1_5: !vec {tv.name = "encoder.layer.5.attention.output.LayerNorm.bias", tv.role = "weight"},
    %uw5: !up_w {tv.name = "encoder.layer.5.intermediate.dense.weight", tv.role = "weight"},
    %ub5: !up_b {tv.name = "encoder.layer.5.intermediate.dense.bias", tv.role = "weight"},
    %dw5: !down_w {tv.name = "encoder.layer.5.output.dense.weight", tv.role = "weight"},
    %db5: !vec {tv.name = "encoder.layer.5.output.dense.bias", tv.role = "weight"},
    %g2_5: !vec {tv.name = "encoder.layer.5.output.LayerNorm.weight", tv.role = "weight"},
    %b2_5: !vec {tv.name = "encoder.layer.5.output.LayerNorm.bias", tv.role = "weight"})
    -> (tensor<?x384xf32> {tv.name = "embeddings"})
    attributes {tv.sizes = {b = 64, s = 256}} {
  %word = tv.gather %words, %ids dim 0 : (!words, !ids) -> !x
  %at = tv.iota 1 like %ids : (!ids) -> tensor<?x?xi32>
  %place = tv.gather %positions, %at dim 0 : (!positions, tensor<?x?xi32>) -> !x
  %type0 = tv.slice %types offsets [0, 0] : (!types) -> tensor<1x384xf32>
  %type = tv.reshape %type0 : (tensor<1x384xf32>) -> tensor<384xf32>
  %kind = tv.broadcast %type dims [2] like %place : (tensor<384xf32>, !x) -> !x
  %fixed = tv.add %place, %kind : (!x, !x) -> !x
  %sum = tv.add %word, %fixed : (!x, !x) -> !x
  %x0 = tv.layer_norm %sum, %eg, %eb epsilon(1.0e-12) : (!x, !vec, !vec) -> !x
  %x1 = call @layer(%x0, %mask, %qw0, %qb0, %kw0, %kb0, %vw0, %vb0, %ow0, %ob0, %g1_0, %b1_0, %uw0, %ub0, %dw0, %db0, %g2_0, %b2_0)
      : (!x, !mask, !heads_w, !heads_b, !heads_w, !heads_b, !heads_w, !heads_b, !out_w, !vec, !vec, !vec, !up_w, !up_b, !down_w, !vec, !vec, !vec) -> !x
  %x2 = call @layer(%x1, %mask, %qw1, %qb1, %kw1, %kb1, %vw1, %vb1, %ow1, %ob1, %g1_1, %b1_1, %uw1, %ub1, %dw1, %db1, %g2_1, %b2_1)
      : (!x, !mask, !heads_w, !heads_b, !heads_w, !heads_b, !heads_w, !heads_b, !out_w, !vec, !vec, !vec, !up_w, !up_b, !down_w, !vec, !vec, !vec) -> !x
  %x3 = call @layer(%x2, %mask, %qw2, %qb2, %kw2, %kb2, %vw2, %vb2, %ow2, %ob2, %g1_2, %b1_2, %uw2, %ub2, %dw2, %db2, %g2_2, %b2_2)
      : (!x, !mask, !heads_w, !heads_b, !heads_w, !heads_b, !heads_w, !heads_b, !out_w, !vec, !vec, !vec, !up_w, !up_b, !down_w, !vec, !vec, !vec) -> !x
  %x4 = call @layer(%x3, %mask, %qw3, %qb3, %kw3, %kb3, %vw3, %vb3, %ow3, %ob3, %g1_3, %b1_3, %uw3, %ub3, %dw3, %db3, %g2_3, %b2_3)
      : (!x, !mask, !heads_w, !heads_b, !heads_w, !heads_b, !heads_w, !heads_b, !out_w, !vec, !vec, !vec, !up_w, !up_b, !down_w, !vec, !vec, !vec) -> !x
  %x5 = call @layer(%x4, %mask, %qw4, %qb4, %kw4, %kb4, %vw4, %vb4, %ow4, %ob4, %g1_4, %b1_4, %uw4, %ub4, %dw4, %db4, %g2_4, %b2_4)
      : (!x, !mask, !heads_w, !heads_b, !heads_w, !heads_b, !heads_w, !heads_b, !out_w, !vec, !vec, !vec, !up_w, !up_b, !down_w, !vec, !vec, !vec) -> !x
  %x6 = call @layer(%x5, %mask, %qw5, %qb5, %kw5, %kb5, %vw5, %vb5, %ow5, %ob5, %g1_5, %b1_5, %uw5, %ub5, %dw5, %db5, %g2_5, %b2_5)
      : (!x, !mask, !heads_w, !heads_b, !heads_w, !heads_b, !heads_w, !heads_b, !out_w, !vec, !vec, !vec, !up_w, !up_b, !down_w, !vec, !vec, !vec) -> !x
  %e = call @pool(%x6, %mask) : (!x, !mask) -> tensor<?x384xf32>
  return %e : tensor<?x384xf32>
}
