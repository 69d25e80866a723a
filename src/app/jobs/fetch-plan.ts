import type { Said } from '../../base/errors.ts';
import { type ByteRange, WORTH_A_REQUEST } from '../../sources/index.ts';
import type { PartsAnswer } from '../analysis-protocol.ts';

/** The parts of one zip to fetch, or why all of it is fetched. */
export type FetchPlan =
  | {
      readonly kind: 'parts';
      readonly ranges: readonly ByteRange[];
      readonly bytes: number;
      readonly files: number;
      readonly wantedFiles: number;
    }
  | { readonly kind: 'whole'; readonly because: string }
  | { readonly kind: 'refused'; readonly why: Said };

/** From this share on one plain download is as fast, goes on where it broke off, and lets the digest be compared. */
const MOST = 0.8;

/**
 * Parts or everything, by what the directory of the zip says. The answer comes from a process that read foreign bytes, so it is taken for
 * numbers and no more.
 */
export function planFetch(size: number, answer: PartsAnswer | undefined): FetchPlan {
  if (answer === undefined) return { kind: 'whole', because: 'its directory could not be judged' };
  if (!answer.ok) return { kind: 'refused', why: { en: answer.told.en.message, zh: answer.told.zh.message } };
  const { ranges, files, wantedFiles } = answer.parts;
  let bytes = 0;
  let end = 0;
  for (const range of ranges) {
    if (
      !Number.isSafeInteger(range.start) ||
      !Number.isSafeInteger(range.end) ||
      range.start < end ||
      range.end <= range.start ||
      range.end > size
    ) {
      return { kind: 'whole', because: 'its directory could not be judged' };
    }
    bytes += range.end - range.start;
    end = range.end;
  }
  if (bytes + ranges.length * WORTH_A_REQUEST > MOST * size) return { kind: 'whole', because: 'most of it is wanted' };
  return { kind: 'parts', ranges, bytes, files, wantedFiles };
}
