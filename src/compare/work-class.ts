import type { WorkClass } from '../model/gpu-facts.ts';

/** What an operator type of CANN does, by its name. The first match counts. */
const CLASSES: readonly (readonly [RegExp, WorkClass])[] = [
  [/apply.*(adam|momentum|sgd|rmsprop|adagrad|lamb)|fused.*(adam|sgd|optim)|adamw|^foreach|lars/i, 'optimizer'],
  [/attention|flashatt|^fa[sg]?[A-Z_]|promptflash|increflash|mla(prolog)?/i, 'attention'],
  [/conv[123]?d|^conv|depthwise|deconv/i, 'convolution'],
  [/mat_?mul|gemm|^mm$|einsum|batchmm/i, 'matmul'],
  [/norm(?!al)/i, 'norm'],
  [/allreduce|allgather|reducescatter|alltoall|broadcast_?hccl|^hcom/i, 'communication'],
  [/reduce|^sum|mean|argmax|argmin|softmax|topk|^max$|^min$|cumsum|^l2loss/i, 'reduction'],
  [
    /transdata|transpose|cast|tensormove|^copy|memcpy|memset|viewcopy|asstrided|slice|^concat|^split|^pack|^unpack|gather|scatter|index|pad|tile|fill|zeroslike|oneslike|broadcastto|embedding/i,
    'copy',
  ],
  [
    /^(add|sub|mul|div|realdiv|neg|abs|exp|log|sqrt|rsqrt|square|pow|sigmoid|tanh|relu|gelu|silu|swish|swiglu|select|where|masked|drop|greater|less|equal|not|logical|minimum|maximum|clip|axpy|addcmul|addcdiv|muls|adds|isfinite|isnan|rotary|bias|sign|erf)/i,
    'elementwise',
  ],
];

export function workClassOf(type: string): WorkClass {
  return CLASSES.find(([test]) => test.test(type))?.[1] ?? 'other';
}

/** Work whose shapes hold the batch: the operators that make up a model. */
export function isModelWork(type: string): boolean {
  const work = workClassOf(type);
  return work === 'matmul' || work === 'convolution' || work === 'attention';
}
