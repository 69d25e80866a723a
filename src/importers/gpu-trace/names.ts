import type { WorkClass } from '../../model/gpu-facts.ts';

/** Name of a device activity, with its class. */
export interface Named {
  readonly name: string;
  readonly class: WorkClass;
}

type Pattern = readonly [WorkClass, RegExp];

/**
 * First match decides. Names as CUDA, ROCm, cuDNN, cuBLAS, CUTLASS, NCCL, PyTorch, Apex, Transformer Engine, vLLM and Triton give them;
 * checked against the traces of Holistic Trace Analysis, where `other` holds 2 to 9 % of the device time outside of recommendation models.
 */
const KERNELS: readonly Pattern[] = [
  ['communication', /nccl|rccl|cross_device_reduce|(one|two)_shot_all_?reduce|all_?reduce_kernel|deep_ep::|nvshmem/i],
  ['optimizer', /adamfunctor|adam_?w?_?kernel|adammath|lambstage|(fused|distributed)_?(adam|sgd|lamb|adagrad|lion)|sgdfunctor|adagrad/i],
  ['attention', /flash_?(fwd|bwd|attn|attention|mla)|fmha|attention|mha_(fwd|bwd|varlen)|(^|[^a-z])mla_|paged_?attn|sdpa/i],
  [
    'convolution',
    /conv(?!ert)|[dw]grad|fprop|winograd|scudnn|cudnn_(infer|train)_(ampere|volta|turing)_\w*cudnn|implicit_?gemm|im2col|miopen\w*sp3/i,
  ],
  [
    'norm',
    /layer_?norm|rms_?norm|group_?norm|batch_?norm|cuComputeGradGammaBeta|GammaBeta|RowwiseMoments|bn_(fw|bw)|instance_?norm|l2_?norm/i,
  ],
  ['matmul', /(?<!fb)gemm|gemv|cutlass|matmul|cublas|(^|[^a-z])mm_|nvjet|Cijk_|splitk|wgmma|tensorop|xmma/i],
  ['copy', /copy|memcpy|memset|CatArray|transpose|nchw_?to|nhwc_?to|nchwToNhwc|nhwcToNchw|permute|convert_fp|cast_kernel/i],
  [
    'reduction',
    /triton_(red|per)_|reduce|softmax|welford|argmax|argmin|topk|scan|cumsum|radix_?sort|bitonic|nll_loss|cross_?entropy|(^|[^a-z])norm/i,
  ],
  ['optimizer', /multi_tensor_apply/i],
  [
    'elementwise',
    /elementwise|FillFunctor|pointwise|dropout|gelu|silu|swiglu|relu|sigmoid|tanh|rotary|rope|activation|unary|binary|masked|where|index_(put|fill|add)|bias|triton_poi/i,
  ],
];

const OPERATORS: readonly Pattern[] = [
  ['communication', /^(c10d|nccl|record_param_comms|_c10d_functional|symm_mem)|all_?(reduce|gather|to_?all)|reduce_scatter/i],
  ['optimizer', /adam|lamb|_fused_sgd|adagrad|_foreach_/i],
  ['attention', /attention|flash_attn|fmha|xformers|sdpa/i],
  ['convolution', /conv/i],
  ['norm', /(batch|layer|group|instance|rms)_?norm|BatchNorm|LayerNorm/i],
  ['matmul', /::(mm|addmm|bmm|baddbmm|addbmm|matmul|linear|einsum|mv|addmv|dot|_scaled_mm|_grouped_mm|_int_mm)(_|$)|(?<!fb)gemm|linear/i],
  [
    'copy',
    /::(copy_?|to|_to_copy|clone|contiguous|cat|stack|transpose|permute|index_select|embedding|gather|select_backward|repeat)(_|$)|copy/i,
  ],
  [
    'reduction',
    /::(sum|mean|max|min|amax|amin|norm|argmax|argmin|softmax|_softmax|_log_softmax|log_softmax|cumsum|topk|sort|nll_loss|var|std|prod|any|all|count_nonzero)(_|$)|softmax|loss|reduce|pool/i,
  ],
  [
    'elementwise',
    /::(add|sub|mul|div|neg|pow|sqrt|rsqrt|exp|log|relu|gelu|silu|sigmoid|tanh|dropout|native_dropout|fill|zero|zeros|ones|where|masked_fill|clamp|threshold_backward|eq|ne|lt|gt|le|ge|bitwise|abs|addcmul|addcdiv|lerp|cos|sin|ge)_?(_|$)|dropout|relu|gelu/i,
  ],
];

export function classOfKernel(name: string): WorkClass {
  return KERNELS.find(([, test]) => test.test(name))?.[0] ?? 'other';
}

export function classOfOperator(name: string): WorkClass {
  return OPERATORS.find(([, test]) => test.test(name))?.[0] ?? 'other';
}

const MAX_NAME = 160;
/** What a generic kernel computes stands in its template arguments. */
const FUNCTOR = /(?:^|[^A-Za-z0-9_])(\w*Functor\w*|\w+_kernel_cuda|\w+Ops)\b/;

/** `void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>, …>(int, …)` → `vectorized_elementwise_kernel<CUDAFunctor_add>`. */
export function shortKernelName(name: string): string {
  const plain = name.replaceAll('(anonymous namespace)::', '').replace(/^void\s+/, '');
  const open = plain.search(/[<(]/);
  if (open <= 0) return plain.slice(0, MAX_NAME);
  const base = plain.slice(0, open).trim();
  const own = base.slice(base.lastIndexOf('::') === -1 ? 0 : base.lastIndexOf('::') + 2);
  if (plain[open] !== '<') return own.slice(0, MAX_NAME);
  const inner = plain.slice(open + 1);
  // CUTLASS has one kernel; its argument is the name.
  const what = own === 'Kernel' || own === 'Kernel2' ? /^\s*([\w:]+)/.exec(inner)?.[1] : FUNCTOR.exec(inner)?.[1];
  return (what === undefined ? own : `${own}<${what}>`).slice(0, MAX_NAME);
}
