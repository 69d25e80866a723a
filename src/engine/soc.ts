import type { Soc } from '../model/remedy.ts';

/**
 * Hardware generation from the device's name. A name that is exactly `Ascend910B` is the first generation;
 * `Ascend910B1` … `Ascend910B4` is A2 (torch_npu, NpuVariables.cpp). A board called "910B" in prose is A2, which is why only the digit decides.
 */
export function socOf(device: string | null): Soc {
  if (device === null) return null;
  if (/^Ascend950/i.test(device)) return '950';
  if (/^Ascend910_93/i.test(device)) return 'A3';
  if (/^Ascend910B\d/i.test(device)) return 'A2';
  if (/^Ascend910(A|B|Pro[AB]|Premium\s*A)?$/i.test(device)) return 'gen-1';
  return null;
}
