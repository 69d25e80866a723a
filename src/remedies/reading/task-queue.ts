import type { SourceTree } from '../../model/source-tree.ts';
import { isAside, isPython } from '../../source/readable-paths.ts';

/** Operators compiled at run time, or an option that may ask for it. */
const COMPILES =
  /\bset_compile_mode\s*\((?!\s*jit_compile\s*=\s*False\s*,?\s*\))|\bjit_compile["']?\s*[:=]\s*True\b|\bjitCompile["']?\s*[:=]\s*["']?(?!disable)/;
/** Kernels launched as graphs, by any road. */
const CAPTURES =
  /\btorch\.compile\b|\bnpu_?graphs?\b|\bNPUGraph|\bCUDAGraph|\.npu\.graph\(|\bmake_graphed_callables\b|\btorchair\b|\bacl_?graph/i;
const ASKS = /\bNPU_JIT_COMPILE\b\W{1,4}(?:1|true|on|enable)/i;

/** Trees do not change while they are alive. */
const known = new WeakMap<SourceTree, boolean>();

/** True when the source speaks against level 2 of the task queue, which needs prebuilt operators launched one by one. */
export function speaksAgainstLevelTwo(tree: SourceTree): boolean {
  const before = known.get(tree);
  if (before !== undefined) return before;
  const found = tree.paths.some((path) => {
    if (isAside(path)) return false;
    const text = tree.read(path) ?? '';
    return ASKS.test(text) || (isPython(path) && (COMPILES.test(text) || CAPTURES.test(text)));
  });
  known.set(tree, found);
  return found;
}
