import type { CodeMap, CodeSite, ResolvedSpec } from './spec.ts';

const TORCH = '/usr/lib/python3.10/site-packages/torch';
const CALL = [`${TORCH}/nn/modules/module.py(1527): _call_impl`, `${TORCH}/nn/modules/module.py(1518): _wrapped_call_impl`];
const PROFILER = [`${TORCH}/_ops.py(692): __call__`, `${TORCH}/autograd/profiler.py(631): __enter__`];

const OPTIM = `${TORCH}/optim`;
const DDP = `${TORCH}/nn/parallel/distributed.py`;

/** Frames between the wrapped model's call and what it does outside the model, by stack key. */
const DDP_INNER: { [module: string]: string[] } = {
  '': [...PROFILER, `${DDP}(1514): forward`, ...CALL],
  buffers: [
    `${DDP}(2013): _distributed_broadcast_coalesced`,
    `${DDP}(2063): _default_broadcast_coalesced`,
    `${DDP}(1978): _sync_module_buffers`,
    `${DDP}(1974): _sync_buffers`,
    `${DDP}(1416): _pre_forward`,
    `${DDP}(1517): forward`,
    ...CALL,
  ],
  p2p: [`${TORCH}/distributed/distributed_c10d.py(2015): batch_isend_irecv`],
};

const frame = (site: CodeSite): string => `${site.file}(${site.line}): ${site.func}`;

/** Where in the script an operator is called from; `module` is the torch file that calls it, if any. */
export type StackSite = keyof Omit<CodeMap, 'main' | 'module'>;

/** Key of a call stack; `callStack` turns it into text. */
export const stackKey = (site: StackSite, module = ''): string => (module ? `${site}|${module}` : site);

/** What call stacks depend on. */
type Script = Pick<ResolvedSpec, 'code' | 'pp'>;

/** Frames of a stack, innermost first. */
export function stackFrames({ code, pp }: Script, key: string): string[] {
  const [site = 'loader', module = ''] = key.split('|') as [StackSite, string?];
  const outer = [frame(code.main), frame(code.module)];
  const inner = module ? [`${TORCH}/nn/modules/${module}`] : [];
  const wrapper = [`${DDP}(1355): _run_ddp_forward`, `${DDP}(1519): forward`, ...CALL];
  const model = [...(pp > 1 ? [] : wrapper), frame(code.ddp)];
  switch (site) {
    case 'loader':
      return [...PROFILER, `${TORCH}/utils/data/dataloader.py(626): __next__`, frame(code.loader), ...outer];
    case 'forward':
    case 'layout':
    case 'compile':
      return [...inner, ...(module ? CALL : []), frame(code[site]), ...CALL, ...model, ...outer];
    case 'ddp':
      return [...(DDP_INNER[module] ?? DDP_INNER[''])!, frame(code.ddp), ...outer];
    case 'loss':
      return [
        `${TORCH}/nn/functional.py(3053): cross_entropy`,
        `${TORCH}/nn/modules/loss.py(1179): forward`,
        ...CALL,
        frame(code.loss),
        ...outer,
      ];
    case 'backward': {
      const autograd = `${TORCH}/autograd/__init__.py`;
      return [
        `${autograd}(100): _make_grads`,
        `${autograd}(242): backward`,
        `${TORCH}/_tensor.py(492): backward`,
        frame(code.backward),
        ...outer,
      ];
    }
    case 'zeroGrad':
      return [...PROFILER, `${OPTIM}/optimizer.py(803): zero_grad`, frame(code.zeroGrad), ...outer];
    case 'optimizerStep': {
      const start =
        module === 'step'
          ? [`${OPTIM}/adamw.py(188): step`, `${OPTIM}/optimizer.py(373): wrapper`]
          : [...PROFILER, `${OPTIM}/optimizer.py(361): wrapper`];
      return [...start, frame(code.optimizerStep), ...outer];
    }
    case 'smallOps':
      if (module === 'forward') return [frame(code.smallOps), ...CALL, ...model, ...outer];
      return [frame(code.smallOps), `${OPTIM}/optimizer.py(373): wrapper`, frame(code.optimizerStep), ...outer];
    default:
      return [...inner, frame(code[site]), ...outer];
  }
}

const texts = new WeakMap<Script, Map<string, string>>();

/** Call stack text as the profiler writes it. */
export function callStack(script: Script, key: string): string {
  let known = texts.get(script);
  if (known === undefined) {
    known = new Map();
    texts.set(script, known);
  }
  let text = known.get(key);
  if (text === undefined) {
    text = stackFrames(script, key).join(';\r\n');
    known.set(key, text);
  }
  return text;
}
