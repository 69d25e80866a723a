import type { CodeMap, CodeSite } from './spec.ts';

const TORCH = '/usr/lib/python3.10/site-packages/torch';
const CALL = [`${TORCH}/nn/modules/module.py(1527): _call_impl`, `${TORCH}/nn/modules/module.py(1518): _wrapped_call_impl`];
const PROFILER = [`${TORCH}/_ops.py(692): __call__`, `${TORCH}/autograd/profiler.py(631): __enter__`];

const frame = (site: CodeSite): string => `${site.file}(${site.line}): ${site.func}`;

/** Where in the script an operator is called from; `module` is the torch file that calls it, if any. */
export type StackSite = keyof Omit<CodeMap, 'main' | 'module'>;

/** Key of a call stack; `callStack` turns it into text. */
export const stackKey = (site: StackSite, module = ''): string => (module ? `${site}|${module}` : site);

/** Frames of a stack, innermost first. */
export function stackFrames(code: CodeMap, key: string): string[] {
  const [site = 'loader', module = ''] = key.split('|') as [StackSite, string?];
  const outer = [frame(code.main), frame(code.module)];
  const inner = module ? [`${TORCH}/nn/modules/${module}`] : [];
  const ddp = [
    `${TORCH}/nn/parallel/distributed.py(1355): _run_ddp_forward`,
    `${TORCH}/nn/parallel/distributed.py(1519): forward`,
    ...CALL,
    frame(code.ddp),
  ];
  switch (site) {
    case 'loader':
      return [...PROFILER, `${TORCH}/utils/data/dataloader.py(626): __next__`, frame(code.loader), ...outer];
    case 'forward':
    case 'layout':
    case 'compile':
      return [...inner, ...(module ? CALL : []), frame(code[site]), ...CALL, ...ddp, ...outer];
    case 'ddp':
      return [...PROFILER, `${TORCH}/nn/parallel/distributed.py(1514): forward`, ...CALL, frame(code.ddp), ...outer];
    case 'loss':
      return [
        `${TORCH}/nn/functional.py(3053): cross_entropy`,
        `${TORCH}/nn/modules/loss.py(1179): forward`,
        ...CALL,
        frame(code.loss),
        ...outer,
      ];
    case 'backward':
      return [
        `${TORCH}/autograd/__init__.py(100): _make_grads`,
        `${TORCH}/autograd/__init__.py(242): backward`,
        `${TORCH}/_tensor.py(492): backward`,
        frame(code.backward),
        ...outer,
      ];
    case 'zeroGrad':
      return [...PROFILER, `${TORCH}/optim/optimizer.py(803): zero_grad`, frame(code.zeroGrad), ...outer];
    case 'optimizerStep':
      return [...PROFILER, `${TORCH}/optim/optimizer.py(361): wrapper`, frame(code.optimizerStep), ...outer];
    case 'smallOps':
      return smallOps(code, module, ddp, outer);
    default:
      return [...inner, frame(code[site]), ...outer];
  }
}

function smallOps(code: CodeMap, where: string, ddp: string[], outer: string[]): string[] {
  if (where === 'forward') return [frame(code.smallOps), ...CALL, ...ddp, ...outer];
  return [frame(code.smallOps), `${TORCH}/optim/optimizer.py(373): wrapper`, frame(code.optimizerStep), ...outer];
}

/** Call stack text as the profiler writes it. */
export function callStack(code: CodeMap, key: string): string {
  return stackFrames(code, key).join(';\r\n');
}
