/* What Chinese texts of the product have to keep to: the word list, full-width punctuation, spaces between scripts, no English sentence. */

/** Words that are not used, and the one that is. */
const WORDS: readonly (readonly [RegExp, string])[] = [
  [/内核|核函数/, 'kernel（计算算子）'],
  [/回归|性能回退/, '变慢（性能劣化）'],
  [/标杆/, '基线'],
  [/您|你|亲，|我们|咱们/, 'the subject is the job, not a person'],
  [/！/, 'no exclamation'],
  [/[“”‘’『』]/, '「」'],
  [/每步|单步/, '迭代'],
  [/未被?(?:计算)?(?:重叠|覆盖)的?通信|暴露的?通信|裸露通信/, '未掩盖通信'],
  [/覆盖分析/, '重叠分析'],
  [/通信组|进程组|通信群/, '通信域'],
  [/群体通信|聚合通信/, '集合通信'],
  [/气泡/, '流水线空泡'],
  [/慢节点|掉队|落后者/, '慢卡'],
  [/慢连接|慢链接/, '慢链路'],
  [/罪魁|元凶|肇事/, '最晚到达的卡'],
  [/重播|回放/, '重放'],
  [/主机侧|宿主机|宿主侧/, 'Host 侧'],
  [/派发|启动内核|发射/, '下发'],
  [/AICPU|AI-CPU/, 'AI CPU'],
  [/AICore|AI-Core/, 'AI Core'],
  [/操作符|运算符/, '算子'],
  [/垃圾收集|垃圾搜集/, '垃圾回收'],
  [/数据装载|数据载入|数据加载器/, '等待数据加载'],
  [/内存分配(?!器)|显存分配(?!器)/, '内存申请'],
  [/类型铸造|强制转换/, '类型转换'],
  [/转置操作/, '转置（Transpose）'],
  [/显卡|计算卡/, '卡'],
  [/置信水平|信心/, '置信度'],
  [/证明材料|佐证/, '证据'],
  [/节省时间|节省的时间|(?<!可)省时/, '可省时间'],
  [/调用堆栈|堆栈/, '调用栈'],
  [/泳道图|甬道/, '泳道'],
  [/门槛|关卡/, '门禁 / 阈值'],
  [/已忽略/, '确认（已知并接受）'],
  [/流同步化/, '流同步'],
  [/(?<!对)应该|显然/, 'plain statement'],
  [/微批/, 'micro batch'],
  [/缓冲区广播/, '广播 buffer'],
  [/步长/, '迭代'],
  [/规约/, '归约'],
  [/产物/, 'artifact'],
];

/** Names of more than three words. */
const NAMES =
  /GitHub Enterprise (?:Server|Cloud)|Ascend PyTorch Profiler|MindStudio Insight|NPU Advisor|Python Package Index|Content Security Policy/g;

const HAN = '\u4e00-\u9fff';
const FULL = '，。；：（）「」、';

/** Markdown without what is no prose: code, addresses, markup. Each inline code is one letter, as it is read. */
export function proseOf(markdown: string): string {
  return markdown
    .replace(/<!--[\s\S]*?-->/g, '')
    .replace(/^(\s*)(`{3,}|~{3,})[\s\S]*?^\s*\2\s*$/gm, '')
    .replace(/(`+)(?:(?!\1)[\s\S])+?\1/g, '`x`')
    .replace(/!\[([^\]]*)\]\([^)\s]*\)/g, '$1')
    .replace(/\[([^\]]*)\]\([^)\s]*\)/g, '$1')
    .replace(/<https?:[^>]*>|https?:\/\/[^\s）。，；|]+/g, 'x')
    .replace(/<\/?[a-z][^>]*>/g, '')
    .replace(/([。，：；])\*\* /g, '$1')
    .replace(/\*\*|__/g, '');
}

/** The pieces of prose: lines, and cells of tables. */
function pieces(prose: string): string[] {
  return prose.split(/\n|(?<!\\)\|/).map((piece) => piece.replace(/^\s*(?:[-*#>]+|\d+\.)\s+/, '').trim());
}

/** A run of Latin words, which is an English sentence or a part of one. */
export function englishIn(prose: string): string | null {
  const text = prose.replaceAll(NAMES, 'Name').replace(/`x`|\{\w+:\w+\}/g, '·');
  return /(?<![\w-])[A-Za-z][a-z'’-]*(?:,? [A-Za-z][a-z'’-]*){3,}/.exec(text)?.[0] ?? null;
}

/** Everything wrong with one Chinese text; empty when it is fine. `loose`: values stand in it of which only the place is known. */
export function problemsOf(text: string): string[] {
  const problems: string[] = [];
  for (const piece of pieces(proseOf(text))) {
    if (piece === '') continue;
    const english = englishIn(piece);
    if (english !== null) problems.push(`English: ${english}`);
    if (!new RegExp(`[${HAN}]`).test(piece)) continue;
    const plain = piece.replaceAll('`x`', 'x');
    const found = (pattern: RegExp, what: string): void => {
      const match = pattern.exec(plain);
      if (match !== null) problems.push(`${what}: …${plain.slice(Math.max(0, match.index - 8), match.index + 10)}…`);
    };
    for (const [pattern, word] of WORDS) found(pattern, `use ${word}`);
    found(new RegExp(`[${HAN}][A-Za-z0-9]|[A-Za-z0-9%][${HAN}]`.replace('0-9%]', '0-9]')), 'a space between Han and Latin');
    found(new RegExp(` [${FULL}]|[${FULL}] `), 'no space beside full-width punctuation');
    found(new RegExp(`[${HAN}][,;:!?()]|[,;:()][${HAN}]|[${HAN}]\\.(?:\\s|$)`), 'full-width punctuation');
    found(/(\d|\}) %/, '12% without a space');
  }
  return problems;
}
