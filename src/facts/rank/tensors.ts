/** Shapes and data types as kernel tables write them: `"4096,1024;151936,1024"` and `DT_BF16;DT_BF16`, an empty part for a scalar. */

/** Bytes of an element, by the names of CANN. */
const BYTES: Readonly<Record<string, number>> = {
  BOOL: 1,
  INT8: 1,
  UINT8: 1,
  INT16: 2,
  UINT16: 2,
  FLOAT16: 2,
  DT_BF16: 2,
  BF16: 2,
  BFLOAT16: 2,
  FLOAT: 4,
  FLOAT32: 4,
  INT32: 4,
  UINT32: 4,
  DOUBLE: 8,
  FLOAT64: 8,
  INT64: 8,
  UINT64: 8,
  COMPLEX64: 8,
  COMPLEX128: 16,
};

export interface Tensor {
  readonly dims: readonly number[];
  /** NaN when an axis is no length: −1 stands for one that is only known when the kernel runs. */
  readonly elements: number;
  /** Bytes of one element; NaN for a type whose size is not known. */
  readonly size: number;
  readonly type: string;
}

/** No tensor has more elements. */
const MAX_ELEMENTS = 1e15;
/** Longer lists belong to fused calls over all parameters; their sum is still exact. */
const MAX_TENSORS = 4_096;

function wordsOf(text: string): string[] {
  return text.replaceAll('"', '').split(';', MAX_TENSORS);
}

export function sizeOfType(type: string): number {
  return BYTES[type.trim().toUpperCase()] ?? Number.NaN;
}

/** null when the shapes were not recorded. */
export function tensorsOf(shapes: string, types: string): Tensor[] | null {
  if (shapes === '' || types === '') return null;
  const names = wordsOf(types);
  return wordsOf(shapes).map((shape, i) => {
    const dims = shape.trim() === '' ? [] : shape.split(',').map((d) => Number(d));
    const type = (names[i] ?? '').trim();
    const product = dims.reduce((all, d) => all * (Number.isInteger(d) && d >= 0 ? d : Number.NaN), 1);
    return { dims, elements: product <= MAX_ELEMENTS ? product : Number.NaN, size: sizeOfType(type), type };
  });
}

/** NaN when a size is not known; a scalar beside tensors does not matter. */
export function bytesOf(tensors: readonly Tensor[] | null): number {
  if (tensors === null) return Number.NaN;
  return tensors.reduce((sum, t) => sum + (t.elements <= 1 && Number.isNaN(t.size) ? 0 : t.elements * t.size), 0);
}
