import type { Advice, Remedy, RemedyContext } from '../model/remedy.ts';
import { count } from './reading/params.ts';
import { both, filled, prose } from './wording/bilingual.ts';

const TITLE = both('Pad messages to multiples of 512 bytes', '将通信数据补齐到 512 字节的倍数');

const PAD = both(
  'Pad the tensor or the bucket to a multiple of 512 bytes times the ranks of the group, so that every part stays aligned.',
  '把张量或桶补齐到 512 字节与组内卡数乘积的倍数，使每一份都对齐。',
);
const EXAMPLE = both(
  'Most of the time goes into packets of {bytes:int} bytes; {padded:int} would be aligned.',
  '耗时最多的是 {bytes:int} 字节的数据包；对齐后为 {padded:int} 字节。',
);
const CHECK = both(
  'Check: packets of that size are as fast as the others in the next profile.',
  '验证：下一次 profile 中这类数据包与其他数据包一样快。',
);

function advise(_: Parameters<Remedy['advise']>[0], context: RemedyContext): Advice {
  const bytes = count(context.params, 'bytes');
  return {
    title: TITLE,
    text: prose(PAD, bytes === null ? null : filled(EXAMPLE, { bytes, padded: Math.ceil(bytes / 512) * 512 }), CHECK),
    code: null,
    preconditions: [],
    references: [],
    edits: [],
    locations: [],
  };
}

/** Packets that are no multiple of 512 bytes and measurably slower. */
export default { id: 'align-messages', title: TITLE, apis: [], advise } satisfies Remedy;
