import { AdviseError } from '../base/errors.ts';
import { say } from '../base/phrase.ts';
import { sentToCard } from '../facts/job/launched.ts';
import type { RawCapture } from '../importers/index.ts';
import type { InputRecord } from '../model/capture.ts';
import type { RankFacts } from '../model/facts.ts';
import type { L10n } from '../model/lang.ts';
import type { ProfileSource } from '../sources/source.ts';
import { analyseCall, FOREIGN } from './describe-inputs.ts';

function rawHint(raw: readonly RawCapture[], label: string): L10n {
  const call = analyseCall(raw, label);
  return {
    en: `the capture is raw; run \`${call}\` where CANN is installed, then upload`,
    zh: `采集数据尚未解析；在装有 CANN 的机器上执行 \`${call}\` 后再上传`,
  };
}
const GPU: L10n = {
  en: 'this is the trace of a GPU, and what is judged here are Ascend profiles: give one of those, and this trace as `--baseline`',
  zh: '这是 GPU 的 trace，而本工具分析 Ascend profile：请提供 Ascend profile，并用 `--baseline` 指定这个 trace',
};
const UPLOAD: L10n = {
  en: 'upload the `*_ascend_pt` folders with their ASCEND_PROFILER_OUTPUT',
  zh: '请上传包含 ASCEND_PROFILER_OUTPUT 的 `*_ascend_pt` 目录',
};

function noteOf({ path, note }: InputRecord): L10n {
  if (note == null) return UPLOAD;
  return { en: `${path}: ${say(note, 'en')}`, zh: `${path}：${say(note, 'zh')}` };
}

/** Nothing in the upload is a profile: says what it is instead, as far as its files tell. */
export function nothingToRead(sources: readonly ProfileSource[], raw: readonly RawCapture[], inputs: readonly InputRecord[]): AdviseError {
  const labels = sources.map((s) => s.label);
  const refused = inputs.find((i) => i.status === 'refused');
  const foreign = FOREIGN.find((o) => inputs.some((i) => i.kind === o.kind));
  const gpu = inputs.some((i) => i.kind === 'GPU trace') ? GPU : null;
  const known = foreign?.fatal ?? gpu ?? (raw.length > 0 ? rawHint(raw, sources[0]!.label) : null);
  const what: L10n = { en: `${labels.join(', ')} holds no Ascend profile`, zh: `${labels.join('、')} 中没有 Ascend profile` };
  return new AdviseError('no-profile', what, known ?? (refused === undefined ? UPLOAD : noteOf(refused)));
}

/** There are files of a rank, but nothing in them can be judged: says why, as far as it can be told. */
export function unreadable(ranks: readonly RankFacts[], raw: readonly RawCapture[], inputs: readonly InputRecord[]): AdviseError {
  const what: L10n = { en: 'the profile files hold nothing that can be used', zh: 'profile 文件中没有可用的数据' };
  const onCpu: L10n = {
    en: 'host operators are here, but not one kernel: the work ran on CPU; check the device of the model and `import torch_npu`',
    zh: '有 Host 算子，但没有任何 kernel：任务在 CPU 上执行；检查模型所在设备与 `import torch_npu`',
  };
  const lost: L10n = {
    en: 'missing kernel data: the host sent work to the card, but not one kernel is here; capture again over more steps, parsing again does not bring it back',
    zh: '缺少 kernel 数据：Host 已向 NPU 下发任务，但没有任何 kernel；采集更多迭代，重新解析无法补回',
  };
  const alone: L10n = {
    en: 'only totals of host operators are here; upload `trace_view.json` and `kernel_details.csv` of the same capture',
    zh: '只有 Host 算子汇总；请上传同一次采集的 `trace_view.json` 与 `kernel_details.csv`',
  };
  const totals: L10n = {
    en: 'operator totals alone have no times; upload `kernel_details.csv` or `trace_view.json` of the same capture',
    zh: '只有算子汇总，没有时间；请上传同一次采集的 `kernel_details.csv` 或 `trace_view.json`',
  };
  const again: L10n = {
    en: 'no trace, kernel or step table with a row is here; capture again at Level1 and upload ASCEND_PROFILER_OUTPUT as a whole',
    zh: '没有含数据的 trace、kernel 或迭代表；请以 Level1 重新采集，并完整上传 ASCEND_PROFILER_OUTPUT',
  };
  const damaged = inputs.find((i) => i.status === 'refused' && i.kind !== 'kernels' && i.kind !== 'step times');
  const isCut = ranks.some((r) => r.damage.length > 0);
  if (damaged?.note == null && !isCut && ranks.some((r) => r.hostOps.length > 0)) {
    // An empty table of kernels tells something, one that was not uploaded tells nothing.
    const hasTable = inputs.some((i) => i.kind === 'kernels' || i.kind === 'trace');
    return new AdviseError('no-profile', what, ranks.some(sentToCard) ? lost : hasTable ? onCpu : alone);
  }
  if (damaged?.note == null && ranks.some((r) => r.opStatistic.length > 0)) return new AdviseError('no-profile', what, totals);
  const first = damaged ?? inputs.find((i) => i.status === 'refused') ?? inputs.find((i) => i.status === 'partial' && i.kind === 'trace');
  if (first?.note != null) return new AdviseError('no-profile', what, noteOf(first));
  return new AdviseError('no-profile', what, raw.length > 0 ? rawHint(raw, '') : again);
}
