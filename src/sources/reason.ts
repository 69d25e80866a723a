import { AdviseError, messageOf, type Said, saidIn } from '../base/errors.ts';

/** What libraries and the system say of damaged or missing files, as far as it is known; English keeps their own words. */
const KNOWN: readonly (readonly [RegExp, string])[] = [
  // First: what follows is a name that a stranger chose.
  [/^[^:]*(?:invalid characters? in filename|absolute path|invalid relative path)/i, '其中有不安全的文件名'],
  [/^more than (\d+) rows$/, '超过 $1 行'],
  [/^not in the list of tables$/, '不在数据表清单中'],
  [/^larger than such a file can be$/, '超出这类文件的大小上限'],
  [/^a page is used twice$/, '同一页被使用两次'],
  [/^rows lie on top of each other$/, '数据行互相重叠'],
  [/^its tree is deeper than any$/, '树的层数超出正常范围'],
  [/end of central directory|not a zip|invalid (?:central directory|local) file header|central directory/i, '它不是 zip，或已被截断'],
  [/unexpected end of (?:file|data)|unexpected eof|premature close|cut off/i, '文件在中途结束'],
  [/incorrect header check|unknown compression method/i, '文件头不是 gzip'],
  [
    /incorrect data check|incorrect length check|invalid (?:block|stored|distance|code|literal|bit|window|lit)|too far back|checksum/i,
    '压缩数据已损坏',
  ],
  [/invalid tar header|maybe the tar is corrupted/i, 'tar 的文件头已损坏'],
  [/\benoent\b|no such file/i, '文件不存在'],
  [/\bea(?:cces|perm)\b|\beperm\b|permission denied/i, '没有读写权限'],
  [/\benospc\b|no space left/i, '磁盘空间不足'],
  [/\beisdir\b/i, '它是目录'],
  [/\benotdir\b/i, '路径中有一段不是目录'],
  [/not a database|malformed|disk image/i, '数据库文件已损坏'],
  [/(?:valid|in|of) JSON\b|JSON (?:input|at position)/, 'JSON 格式有误'],
];

/** Why something could not be read or written, from an error of any origin. */
export function reasonOf(error: unknown): Said {
  if (error instanceof AdviseError) return { en: error.told.en.message, zh: error.told.zh.message };
  const en = messageOf(error);
  for (const [pattern, zh] of KNOWN) {
    const match = pattern.exec(en);
    if (match !== null) return { en, zh: zh.replace('$1', match[1] ?? '') };
  }
  return en;
}

const MAX_REASON = 200;

/** The same as parameters of a message: `{why:code}` in English, `{whyZh:code}` in Chinese. */
export function reasonParams(error: unknown): { readonly why: string; readonly whyZh: string } {
  const said = typeof error === 'object' && error !== null && 'zh' in error ? (error as Said) : reasonOf(error);
  return { why: saidIn(said, 'en').slice(0, MAX_REASON), whyZh: saidIn(said, 'zh').slice(0, MAX_REASON) };
}
