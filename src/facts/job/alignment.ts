import type { KernelGroup } from '../../model/facts.ts';

/** Rows of a matrix start on lines of the cache only if they are a multiple of it long, bytes (vendor's performance guide for A2). */
const LINE = 512;
const MATMUL = /^(Batch)?MatMul(V\d|Common)?$|^GroupedMatmul$/i;
const ND = /^(ND|NCHW|NHWC|)$/;

export const isMatmul = (group: KernelGroup): boolean => MATMUL.test(group.type);

/** A matrix whose rows do not fill whole lines of 512 bytes. */
export interface Misaligned {
  readonly shape: string;
  readonly tail: number;
  readonly bytes: number;
  /** Next length that does. */
  readonly padded: number;
}

const SIZES: Readonly<Record<string, number>> = { DT_BF16: 2, BF16: 2, FLOAT16: 2, FLOAT: 4, FLOAT32: 4, INT8: 1 };

/** The first matrix of the product whose last axis is misaligned; null when all are fine, private formats are, too. */
export function misaligned(group: KernelGroup): Misaligned | null {
  if (!isMatmul(group)) return null;
  const sides = [
    [group.inputShapes, group.inputTypes, group.inputFormats],
    [group.outputShapes, group.outputTypes, group.outputFormats],
  ] as const;
  for (const [shapes, types, formats] of sides) {
    const typeOf = types.split(';');
    const formatOf = formats.split(';');
    for (const [i, shape] of shapes.split(';').entries()) {
      const dims = shape.split(',').map(Number);
      const size = SIZES[(typeOf[i] ?? '').trim().toUpperCase()] ?? Number.NaN;
      const tail = dims[dims.length - 1]!;
      if (dims.length < 2 || !ND.test((formatOf[i] ?? '').trim()) || !(tail * size > LINE)) continue;
      if ((tail * size) % LINE !== 0) return { shape, tail, bytes: tail * size, padded: (Math.ceil((tail * size) / LINE) * LINE) / size };
    }
  }
  return null;
}
