import { fill } from '../base/phrase.ts';
import type { L10n, Lang, ParamValue } from '../model/lang.ts';

/**
 * Every word of the interface that is not part of a finding, in both languages side by side.
 * Values are prose: literals between backticks, placeholders as in `base/phrase.ts` (`{x:text}` takes figures that are
 * already formatted and prose of the report; foreign strings take `code`).
 */
export const WORDS = {
  // severity, confidence, proof
  'severity.critical': { en: 'Critical', zh: '严重' },
  'severity.high': { en: 'High', zh: '高' },
  'severity.medium': { en: 'Medium', zh: '中' },
  'severity.info': { en: 'Info', zh: '提示' },
  'confidence.high': { en: 'high', zh: '高' },
  'confidence.medium': { en: 'medium', zh: '中' },
  'confidence.low': { en: 'low', zh: '低' },
  'proof.call-stack': { en: 'proven by call stack', zh: '调用栈已证实' },
  'proof.moved': {
    en: 'proven by call stack; line {line:num} in the profiled code',
    zh: '调用栈已证实；在被采集的代码中为第 {line:num} 行',
  },
  'proof.one-of': { en: 'one of {n:int} places that fit the call stack', zh: '与调用栈相符的 {n:int} 处之一' },
  'proof.profile': { en: 'named by the profile, not checked against the repository', zh: '由 profile 给出，未与仓库核对' },
  'proof.syntax': { en: 'found in the source, not proven by this profile', zh: '在源码中找到，这份 profile 未证实' },

  // headings
  'heading.prefix': { en: 'NPU Advisor: {x:text}', zh: 'NPU Advisor：{x:text}' },
  'heading.cost.one': {
    en: '1 cause costs about {cost:text} of {article:text} {step:text} step ({share:text})',
    zh: '1 个原因让每个迭代（{step:text}）多花约 {cost:text}（{share:text}）',
  },
  'heading.cost.many': {
    en: '{n:int} causes cost about {cost:text} of {article:text} {step:text} step ({share:text})',
    zh: '{n:int} 个原因让每个迭代（{step:text}）多花约 {cost:text}（{share:text}）',
  },
  'heading.bound.one': {
    en: '1 cause costs up to {cost:text} of {article:text} {step:text} step ({share:text})',
    zh: '1 个原因让每个迭代（{step:text}）最多多花 {cost:text}（{share:text}）',
  },
  'heading.bound.many': {
    en: '{n:int} causes cost up to {cost:text} of {article:text} {step:text} step ({share:text})',
    zh: '{n:int} 个原因让每个迭代（{step:text}）最多多花 {cost:text}（{share:text}）',
  },
  'heading.open.one': {
    en: '1 open cause, about {cost:text} of {article:text} {step:text} step',
    zh: '1 个原因待处理，每迭代约 {cost:text}（共 {step:text}）',
  },
  'heading.open.many': {
    en: '{n:int} open causes, about {cost:text} of {article:text} {step:text} step',
    zh: '{n:int} 个原因待处理，每迭代约 {cost:text}（共 {step:text}）',
  },
  'heading.acknowledged': { en: '{x:text} · {n:int} acknowledged', zh: '{x:text} · {n:int} 个已确认' },
  'heading.cost-only.one': { en: '1 cause costs about {cost:text} per step', zh: '1 个原因让每个迭代多花约 {cost:text}' },
  'heading.cost-only.many': { en: '{n:int} causes cost about {cost:text} per step', zh: '{n:int} 个原因让每个迭代多花约 {cost:text}' },
  'heading.bound-only.one': { en: '1 cause costs up to {cost:text} per step', zh: '1 个原因让每个迭代最多多花 {cost:text}' },
  'heading.bound-only.many': { en: '{n:int} causes cost up to {cost:text} per step', zh: '{n:int} 个原因让每个迭代最多多花 {cost:text}' },
  'heading.slower': {
    en: 'each step is {delta:text} slower than in the baseline ({change:text})',
    zh: '每个迭代比基线慢 {delta:text}（{change:text}）',
  },
  'heading.warnings.one': { en: '1 warning that costs no measurable time', zh: '1 项提醒，不影响可测得的耗时' },
  'heading.warnings.many': { en: '{n:int} warnings that cost no measurable time', zh: '{n:int} 项提醒，不影响可测得的耗时' },
  'heading.also.one': { en: '{x:text} · 1 warning', zh: '{x:text} · 1 项提醒' },
  'heading.also.many': { en: '{x:text} · {n:int} warnings', zh: '{x:text} · {n:int} 项提醒' },
  'heading.quiet': { en: 'nothing to change', zh: '无需修改' },
  'heading.quiet-passed': { en: 'gate passed, nothing to change', zh: '门禁通过，无需修改' },
  'heading.gate-failed': { en: 'gate failed, {x:text}', zh: '门禁不通过，{x:text}' },
  'heading.incomplete.none': { en: 'no cause found in an incomplete profile{part:text}', zh: 'profile 不完整{part:text}，未找到原因' },
  'heading.incomplete.one': { en: '1 cause found in an incomplete profile{part:text}', zh: 'profile 不完整{part:text}，找到 1 个原因' },
  'heading.incomplete.many': {
    en: '{n:int} causes found in an incomplete profile{part:text}',
    zh: 'profile 不完整{part:text}，找到 {n:int} 个原因',
  },
  'heading.incomplete.part': { en: ' ({seen:int} of {world:int} ranks)', zh: '（{world:int} 张卡中有 {seen:int} 张）' },
  'heading.no-data': { en: 'the profile of {sha:code} holds no step to analyse', zh: '{sha:code} 的 profile 中没有可分析的迭代' },
  'heading.no-profile': { en: 'no profile arrived for {sha:code}', zh: '没有收到 {sha:code} 的 profile' },
  'heading.unreadable': { en: 'the profile of {sha:code} cannot be read', zh: '{sha:code} 的 profile 无法读取' },
  'heading.expired': { en: 'the profile of {sha:code} has expired', zh: '{sha:code} 的 profile 已过期' },
  'heading.waiting': { en: 'waiting for the profile of {sha:code}', zh: '等待 {sha:code} 的 profile' },
  'heading.analysing': { en: 'analysing the profile of {sha:code}', zh: '正在分析 {sha:code} 的 profile' },
  'heading.error': { en: 'could not analyse {sha:code}', zh: '{sha:code} 分析失败' },
  'heading.jobs.one': { en: '1 of {all:int} training jobs wants a look', zh: '{all:int} 个训练任务中有 1 个需要关注' },
  'heading.jobs.many': {
    en: '{n:int} of {all:int} training jobs want a look',
    zh: '{all:int} 个训练任务中有 {n:int} 个需要关注',
  },
  'heading.jobs.quiet': { en: '{all:int} training jobs, nothing to change', zh: '{all:int} 个训练任务，无需修改' },
  'heading.config': { en: 'the configuration of the base branch is invalid', zh: '基线分支的配置无效' },

  // step bar and step
  'time.computing': { en: 'computing', zh: '计算' },
  'time.exposed': { en: 'exposed communication', zh: '未掩盖通信' },
  'time.idle': { en: 'idle', zh: '空闲' },
  'time.overlapped': { en: 'overlapped', zh: '已掩盖通信' },
  'time.bubble': { en: 'bubble', zh: '流水线空泡' },
  'time.preparing': { en: 'preparing', zh: '准备时间' },
  'time.step': { en: 'step time', zh: '迭代耗时' },
  'quiet.step': {
    en: 'Step {step:text}. No cause above the reporting floor of {floor:text} ({share:text}).',
    zh: '迭代 {step:text}。没有超过报告下限 {floor:text}（{share:text}）的原因。',
  },
  'quiet.small.one': {
    en: 'Step {step:text}. No cause costs 2\u00a0% of it; 1 smaller one is in the full report.',
    zh: '迭代 {step:text}。没有占 2% 以上的原因；另有 1 个较小的原因见完整报告。',
  },
  'quiet.small.many': {
    en: 'Step {step:text}. No cause costs 2\u00a0% of it; {n:int} smaller ones are in the full report.',
    zh: '迭代 {step:text}。没有占 2% 以上的原因；另有 {n:int} 个较小的原因见完整报告。',
  },
  'quiet.acknowledged': {
    en: 'Step {step:text}. No open cause above the reporting floor of {floor:text}.',
    zh: '迭代 {step:text}。没有超过报告下限 {floor:text} 的待处理原因。',
  },
  'quiet.plain': { en: 'No cause above the reporting floor of {floor:text}.', zh: '没有超过报告下限 {floor:text} 的原因。' },

  // cause table
  'cause.number': { en: '#', zh: '#' },
  'cause.cause': { en: 'Cause', zh: '原因' },
  'cause.saves': { en: 'Saves per step', zh: '每迭代可省' },
  'cause.where': { en: 'Where', zh: '位置' },
  'cause.change': { en: 'Change', zh: '改法' },
  'cause.suggestion': { en: 'suggestion', zh: '修改建议' },
  'cause.none': { en: '–', zh: '–' },
  'cause.no-time': { en: 'no time', zh: '不计耗时' },
  'cause.part-of': { en: 'part of {n:int}', zh: '已计入 {n:int}' },
  'ranks.one': { en: 'rank {ranks:ranks}', zh: '卡 {ranks:ranks}' },
  'ranks.many': { en: 'ranks {ranks:ranks}', zh: '卡 {ranks:ranks}' },
  'ranks.all': { en: 'all {n:int} ranks', zh: '全部 {n:int} 张卡' },
  'groups.one': { en: 'group {groups:code}', zh: '通信域 {groups:code}' },
  'groups.many': { en: 'groups {groups:code}', zh: '通信域 {groups:code}' },
  'total.overlap': {
    en: 'Together about {likely:text}, at most {ceiling:text}: the causes overlap, so the rows do not add up.',
    zh: '合计约 {likely:text}，最多 {ceiling:text}：原因之间有重叠，各行不能直接相加。',
  },
  'total.plain': { en: 'Together about {likely:text}, at most {ceiling:text}.', zh: '合计约 {likely:text}，最多 {ceiling:text}。' },
  'total.bound-overlap': {
    en: 'Together at most {ceiling:text}: the causes overlap, so the rows do not add up.',
    zh: '合计最多 {ceiling:text}：原因之间有重叠，各行不能直接相加。',
  },
  'total.bound': { en: 'Together at most {ceiling:text}.', zh: '合计最多 {ceiling:text}。' },
  'more.one': { en: '1 more cause in the full report.', zh: '另有 1 个原因见完整报告。' },
  'more.many': { en: '{n:int} more causes in the full report.', zh: '另有 {n:int} 个原因见完整报告。' },

  // acknowledged
  'ack.title.one': { en: '1 acknowledged', zh: '1 个已确认' },
  'ack.title.many': { en: '{n:int} acknowledged', zh: '{n:int} 个已确认' },
  'ack.mark': { en: '{title:text} (acknowledged)', zh: '{title:text}（已确认）' },
  'ack.now': { en: 'Now', zh: '当前' },
  'ack.then': { en: 'When acknowledged', zh: '确认时' },
  'ack.by': { en: 'By, until', zh: '确认人，有效期' },
  'ack.reason': { en: 'Reason', zh: '理由' },
  'ack.settings': { en: 'settings', zh: '配置' },
  'ack.until-grows': { en: 'until it grows', zh: '耗时增长前有效' },
  'ack.rule': {
    en: 'Each comes back by itself when its cost grows by more than 10\u00a0% and the noise, or the date passes. Undo: {undo:code}.',
    zh: '耗时增长超过 10% 与噪声，或到期后会自动恢复。撤销：{undo:code}。',
  },
  'ack.muted': {
    en: 'Those of the settings are muted in {file:code} of the base branch.',
    zh: '标为配置的结果由基线分支的 {file:code} 静默。',
  },
  'ack.regression': { en: 'Each step is slower than in the baseline', zh: '每个迭代比基线慢' },
  'section.acknowledged': { en: 'acknowledged causes', zh: '已确认的原因' },

  // missing
  'missing.title': { en: 'What this profile could not tell', zh: '这份 profile 无法回答的问题' },
  'missing.what': { en: 'Missing', zh: '缺少' },
  'missing.consequence': { en: 'So we do not know', zh: '因此不知道' },
  'missing.remedy': { en: 'To find out', zh: '如何补齐' },
  'missing.more.one': { en: '1 more line in the full report.', zh: '另有 1 行见完整报告。' },
  'missing.more.many': { en: '{n:int} more lines in the full report.', zh: '另有 {n:int} 行见完整报告。' },

  // gate
  'gate.pass': { en: 'Gate: passed.', zh: '门禁：通过。' },
  'gate.fail': { en: 'Gate: failed.', zh: '门禁：不通过。' },
  'gate.neutral': { en: 'Gate: neutral.', zh: '门禁：中立。' },
  'gate.not-blocked': { en: 'Merging is not blocked.', zh: '不阻塞合入。' },
  'gate.missing.neutral': { en: 'Gate: neutral', zh: '门禁：中立' },
  'gate.missing.failure': { en: 'Gate: failed', zh: '门禁：不通过' },
  'gate.missing.skipped': { en: 'Gate: skipped', zh: '门禁：跳过' },
  'gate.missing.neutral.rest': { en: ' (`on_missing: neutral`), merging is not blocked. ', zh: '（`on_missing: neutral`），不阻塞合入。' },
  'gate.missing.failure.rest': {
    en: ' (`on_missing: failure`), the check fails until a profile arrives. ',
    zh: '（`on_missing: failure`），收到 profile 之前检查不通过。',
  },
  'gate.missing.skipped.rest': { en: ' (`on_missing: skipped`), merging is not blocked. ', zh: '（`on_missing: skipped`），不阻塞合入。' },
  'gate.missing.again.run': { en: 'The next run tries again.', zh: '下次运行会再次尝试。' },
  'gate.missing.again': {
    en: 'Next push tries again; `/npu-advise rerun` looks once more now.',
    zh: '下次推送会再次尝试；`/npu-advise rerun` 可立即重查。',
  },

  // fold-outs
  'fold.evidence': { en: 'Evidence and confidence', zh: '证据与置信度' },
  'fold.evidence.item': { en: '{n:int}, {confidence:text}.', zh: '{n:int}，{confidence:text}。' },
  'fold.fixed.one': { en: 'Fixed in {sha:text}: 1 cause', zh: '{sha:text} 已修复 1 个原因' },
  'fold.fixed.many': { en: 'Fixed in {sha:text}: {n:int} causes', zh: '{sha:text} 已修复 {n:int} 个原因' },
  'fold.fixed.was': { en: '{title:text} (was {saving:text} per step)', zh: '{title:text}（此前每迭代{saving:text}）' },
  'fold.not-possible': { en: 'Not possible', zh: '无法检查' },
  'fold.why': { en: 'Why', zh: '理由' },
  'fold.howto': { en: 'How to upload a profile', zh: '如何上传 profile' },

  // counts
  'counts.passed.one': { en: '1 check passed', zh: '1 项检查通过' },
  'counts.passed.many': { en: '{n:int} checks passed', zh: '{n:int} 项检查通过' },
  'counts.not-possible': { en: '{n:int} not possible with this profile', zh: '{n:int} 项因数据不足无法检查' },
  'counts.errors': { en: '{n:int} could not run', zh: '{n:int} 项运行出错' },

  // footer
  'footer.steps.one': { en: '1 step', zh: '1 个迭代' },
  'footer.steps.many': { en: 'Median of {n:int} steps', zh: '{n:int} 个迭代的中位数' },
  'footer.ranks.of': { en: '{n:int} of {world:int} ranks', zh: '{n:int}/{world:int} 张卡' },
  'footer.ranks.one': { en: '1 rank', zh: '1 张卡' },
  'footer.ranks.many': { en: '{n:int} ranks', zh: '{n:int} 张卡' },
  'footer.unranked.one': { en: '1 folder without rank number', zh: '1 个未记录卡序号的目录' },
  'footer.unranked.many': { en: '{n:int} folders without rank number', zh: '{n:int} 个未记录卡序号的目录' },
  'footer.no-base': { en: 'no base profile yet', zh: '尚无基线' },
  'footer.fork': { en: 'profile reported by a fork run', zh: 'profile 由 fork 的运行提供' },
  'footer.pending': { en: 'analysing {new:code}, figures above are from {old:code}', zh: '正在分析 {new:code}，以上数据来自 {old:code}' },
  'footer.capped': { en: 'Confidence is capped at medium', zh: '置信度最高为中' },
  'footer.report': { en: 'full report', zh: '完整报告' },
  'footer.help': { en: '`/npu-advise help`', zh: '`/npu-advise help`' },

  // details
  'detail.why': { en: 'Why', zh: '证据' },
  'detail.patch': { en: 'All changes as one patch', zh: '全部改动的补丁' },
  'detail.patch.note': {
    en: 'For `git apply`. Read the preconditions of each change above first: not all of them are proven.',
    zh: '供 `git apply` 使用。先阅读上面各改动的前提条件：并非全部已证实。',
  },
  'detail.patch.left': {
    en: 'Not shown here: {files:text}; `npu-advise patch` writes them.',
    zh: '此处未显示：{files:text}；`npu-advise patch` 可输出。',
  },
  'detail.change': { en: 'Change', zh: '改法' },
  'detail.preconditions': { en: 'Holds when', zh: '前提' },
  'detail.references': { en: 'References', zh: '参考' },
  'detail.sure': { en: 'How sure', zh: '置信度' },
  'detail.sure.measured': {
    en: '{confidence:text}. Saving measured: {method:text}',
    zh: '{confidence:text}。可省时间为实测：{method:text}',
  },
  'detail.sure.modelled': {
    en: '{confidence:text}. Saving modelled: {method:text}',
    zh: '{confidence:text}。可省时间为推算：{method:text}',
  },
  'detail.sure.bound': {
    en: '{confidence:text}. Only the upper bound of the saving is known: {method:text}',
    zh: '{confidence:text}。可省时间仅知上限：{method:text}',
  },
  'detail.sure.plain': { en: '{confidence:text}.', zh: '{confidence:text}。' },
  'detail.saves': { en: '{saving:text} per step, {share:text} of the step', zh: '每迭代{saving:text}，占迭代的 {share:text}' },
  'detail.saves-nothing': { en: 'costs no measurable time', zh: '不影响可测得的耗时' },
  'detail.symptom': { en: 'explained by cause {n:int}', zh: '由原因 {n:int} 引起' },
  'detail.steps.one': { en: 'step {steps:ranks}', zh: '迭代 {steps:ranks}' },
  'detail.steps.many': { en: 'steps {steps:ranks}', zh: '迭代 {steps:ranks}' },
  'detail.at': { en: 'at {at:text} for {duration:text}', zh: '{at:text} 处，持续 {duration:text}' },
  'detail.rank': { en: 'rank {n:int}', zh: '卡 {n:int}' },
  'detail.step': { en: 'step {n:int}', zh: '迭代 {n:int}' },
  'detail.breakdown': { en: 'Step breakdown', zh: '迭代耗时构成' },
  'detail.breakdown.note': {
    en: 'Milliseconds. The bubble is part of exposed communication.',
    zh: '单位为毫秒。未掩盖通信在 MindStudio 界面为「未重叠」，流水线空泡包含在其中。',
  },
  'detail.breakdown.cut': {
    en: 'Milliseconds, one median step per rank, slowest first: {shown:int} of {total:int} rows; `npu-advise analyze --format json` has all.',
    zh: '单位为毫秒，每张卡取中位迭代，慢的在前：共 {total:int} 行，此处 {shown:int} 行；全部见 `npu-advise analyze --format json`。',
  },
  'detail.job': { en: 'Job and capture', zh: '作业与采集' },
  'detail.inputs': { en: 'Inputs', zh: '输入' },
  'detail.inputs.more': { en: ' and {n:int} more', zh: ' 等，另有 {n:int} 个' },
  'detail.inputs.cut': {
    en: '{shown:int} of {total:int} rows; `npu-advise analyze --format json` has every file.',
    zh: '共 {total:int} 行，此处 {shown:int} 行；全部文件见 `npu-advise analyze --format json`。',
  },
  'detail.notes': { en: 'Notes', zh: '说明' },
  'detail.checks': { en: 'Checks: {counts:text}', zh: '检查项：{counts:text}' },
  'detail.findings': { en: 'Causes', zh: '原因' },
  'detail.tool': { en: 'Made by npu-advisor {version:code}', zh: '由 npu-advisor {version:code} 生成' },
  'column.rank': { en: 'Rank', zh: '卡序号' },
  'column.step': { en: 'Step', zh: '迭代' },
  'column.check': { en: 'Check', zh: '检查项' },
  'column.result': { en: 'Result', zh: '结果' },
  'column.reason': { en: 'Reason', zh: '说明' },
  'column.file': { en: 'File', zh: '文件' },
  'column.kind': { en: 'Kind', zh: '类型' },
  'column.size': { en: 'Size', zh: '大小' },
  'column.status': { en: 'Status', zh: '状态' },
  'column.note': { en: 'Note', zh: '备注' },
  'outcome.pass': { en: 'passed', zh: '通过' },
  'outcome.finding': { en: 'cause found', zh: '找到原因' },
  'outcome.notApplicable': { en: 'not possible', zh: '无法检查' },
  'outcome.error': { en: 'could not run', zh: '运行出错' },
  'status.used': { en: 'used', zh: '已使用' },
  'status.partial': { en: 'partly used', zh: '部分使用' },
  'status.ignored': { en: 'not used', zh: '未使用' },
  'status.refused': { en: 'refused', zh: '已拒绝' },
  'job.step': { en: 'Step time {step:text}', zh: '迭代耗时 {step:text}' },
  'job.step-single': { en: 'Step time {step:text}: one step, no noise estimate', zh: '迭代耗时 {step:text}：只有 1 个迭代，无法估计噪声' },
  'job.span': { en: 'Device span {step:text}', zh: '设备侧跨度 {step:text}' },
  'job.step-noise': { en: 'Step time {step:text}, noise ±{noise:text}', zh: '迭代耗时 {step:text}，噪声 ±{noise:text}' },
  'job.step-unknown': { en: 'Step time unknown', zh: '迭代耗时未知' },
  'job.basis': { en: 'Basis: {basis:text}', zh: '依据：{basis:text}' },
  'job.ranks': { en: 'Ranks {ranks:ranks} of a world of {world:int}', zh: '卡 {ranks:ranks}，共 {world:int} 张卡' },
  'job.ranks-alone': { en: 'Ranks {ranks:ranks}, world size unknown', zh: '卡 {ranks:ranks}，总卡数未知' },
  'job.missing': { en: 'Missing ranks {ranks:ranks}', zh: '缺少卡 {ranks:ranks}' },
  'job.steps': { en: 'Steps used {steps:ranks}', zh: '使用的迭代 {steps:ranks}' },
  'job.dropped': { en: 'Step {n:int} left out: {why:text}', zh: '未使用迭代 {n:int}：{why:text}' },
  'job.level': { en: 'Capture level {level:code}', zh: '采集等级 {level:code}' },
  'job.device': { en: 'Device {device:code}', zh: '设备 {device:code}' },
  'job.versions': {
    en: 'CANN {cann:code}, torch_npu {torchNpu:code}, torch {torch:code}',
    zh: 'CANN {cann:code}，torch_npu {torchNpu:code}，torch {torch:code}',
  },
  'job.throughput': { en: '{n:num} samples per second', zh: '每秒 {n:num} 个样本' },
  'job.tokens': { en: '{n:int} tokens per second', zh: '每秒 {n:int} 个 token' },

  // comparison with the baseline
  'compare.title': { en: 'Compared with the baseline {label:code}', zh: '与基线 {label:code} 对比' },
  'compare.column.step': { en: 'Per step, median', zh: '每迭代，中位数' },
  'compare.column.base': { en: 'Baseline', zh: '基线' },
  'compare.column.head': { en: 'Now', zh: '本次' },
  'compare.column.change': { en: 'Change', zh: '变化' },
  'compare.how': { en: 'How this was compared', zh: '对比方法' },
  'compare.step': { en: 'step', zh: '迭代' },
  'compare.range': { en: ' ({low:text} … {high:text})', zh: '（{low:text} … {high:text}）' },
  'compare.detail': { en: '{what:text}: {change:text}', zh: '{what:text}：{change:text}' },
  'compare.detail-calls': {
    en: '{what:text}: {change:text}, {from:int} → {to:int} calls per step',
    zh: '{what:text}：{change:text}，每迭代 {from:int} → {to:int} 次',
  },
  'compare.cause.new': { en: 'New cause, {change:text}: {title:text}', zh: '新增原因，{change:text}：{title:text}' },
  'compare.cause.more': { en: 'Cause that grew, {change:text}: {title:text}', zh: '加重的原因，{change:text}：{title:text}' },
  'compare.cause.less': { en: 'Cause that shrank, {change:text}: {title:text}', zh: '减轻的原因，{change:text}：{title:text}' },
  'compare.cause.gone': { en: 'Costs no time any more, {change:text}: {title:text}', zh: '不再影响耗时，{change:text}：{title:text}' },
  'compare.cause.bound': { en: 'New cause, up to {of:text}: {title:text}', zh: '新增原因，最多 {of:text}：{title:text}' },
  'compare.throughput': {
    en: '{name:text}: {base:text} → {head:text} ({change:text})',
    zh: '{name:text}：{base:text} → {head:text}（{change:text}）',
  },
  'compare.trade.regression': {
    en: 'By itself slower: {name:text}, {base:text} → {head:text} ({change:text})',
    zh: '单项变慢：{name:text}，{base:text} → {head:text}（{change:text}）',
  },
  'compare.trade.improvement': {
    en: 'By itself faster: {name:text}, {base:text} → {head:text} ({change:text})',
    zh: '单项变快：{name:text}，{base:text} → {head:text}（{change:text}）',
  },
  'compare.steps': {
    en: 'Steps used: {now:int}, baseline {before:int}; {method:text}',
    zh: '使用的迭代：本次 {now:int} 个，基线 {before:int} 个；{method:text}',
  },
  'compare.folded': {
    en: 'Parts that changed by less than 1\u00a0% of the step are in the last row.',
    zh: '变化小于迭代 1% 的部分归入最后一行。',
  },
  'compare.pace': {
    en: 'The parts are those of rank {ranks:ranks}, which the others wait for.',
    zh: '各部分取自卡 {ranks:ranks}，其余卡在等待该卡。',
  },
  'compare.runs': { en: '{n:int} runs of the baseline: {times:text}', zh: '基线共 {n:int} 次运行：{times:text}' },

  // check run
  'check.slower': { en: '{change:text} per step ({share:text})', zh: '每迭代 {change:text}（{share:text}）' },
  'check.waiting': { en: 'Waiting for profile of {sha:text}', zh: '等待 {sha:text} 的 profile' },
  'check.analysing': { en: 'Analysing profile of {sha:text}', zh: '正在分析 {sha:text} 的 profile' },
  'check.progress.queue': { en: 'Profile of {sha:text} has arrived and waits its turn', zh: '{sha:text} 的 profile 已收到，排队中' },
  'check.progress.download': {
    en: 'Downloading profile of {sha:text}: {done:bytes} of {total:bytes}',
    zh: '正在下载 {sha:text} 的 profile：{done:bytes} / {total:bytes}',
  },
  'check.progress.read': {
    en: 'Reading profile of {sha:text}: {ranks:int} of {all:int} ranks',
    zh: '正在读取 {sha:text} 的 profile：{ranks:int} / {all:int} 张卡',
  },
  'check.progress.diagnose': { en: 'Looking for causes in profile of {sha:text}', zh: '正在分析 {sha:text} 的 profile：查找原因' },
  'check.open.one': { en: '1 open cause, {acknowledged:int} acknowledged', zh: '1 个原因待处理，{acknowledged:int} 个已确认' },
  'check.open.many': {
    en: '{n:int} open causes, {acknowledged:int} acknowledged',
    zh: '{n:int} 个原因待处理，{acknowledged:int} 个已确认',
  },
  'check.causes.one': { en: '1 cause, about {part:text} of {step:text} per step', zh: '1 个原因，每迭代约 {cost:text}（共 {step:text}）' },
  'check.causes.many': {
    en: '{n:int} causes, about {part:text} of {step:text} per step',
    zh: '{n:int} 个原因，每迭代约 {cost:text}（共 {step:text}）',
  },
  'check.bound.one': { en: '1 cause, up to {part:text} of {step:text} per step', zh: '1 个原因，每迭代最多 {cost:text}（共 {step:text}）' },
  'check.bound.many': {
    en: '{n:int} causes, up to {part:text} of {step:text} per step',
    zh: '{n:int} 个原因，每迭代最多 {cost:text}（共 {step:text}）',
  },
  'check.gate-failed': { en: 'Gate failed: {x:text}', zh: '门禁不通过：{x:text}' },
  'check.quiet': { en: 'Nothing to change', zh: '无需修改' },
  'check.quiet-step': { en: 'Nothing to change, {step:text} per step', zh: '无需修改，每迭代 {step:text}' },
  'check.incomplete.none': { en: 'Incomplete profile{part:text}, no cause found', zh: 'profile 不完整{part:text}，未找到原因' },
  'check.incomplete.one': { en: 'Incomplete profile{part:text}, 1 cause', zh: 'profile 不完整{part:text}，1 个原因' },
  'check.incomplete.many': { en: 'Incomplete profile{part:text}, {n:int} causes', zh: 'profile 不完整{part:text}，{n:int} 个原因' },
  'check.incomplete.part': { en: ': {seen:int} of {world:int} ranks', zh: '：{seen:int}/{world:int} 张卡' },
  'check.no-data': { en: 'The profile holds no step to analyse', zh: 'profile 中没有可分析的迭代' },
  'check.no-profile': { en: 'No profile arrived', zh: '没有收到 profile' },
  'check.expired': { en: 'The profile has expired', zh: 'profile 已过期' },
  'check.unreadable': { en: 'The profile cannot be read', zh: 'profile 无法读取' },
  'check.error': { en: 'Could not analyse: {reason:text}', zh: '分析失败：{reason:text}' },
  'check.config': { en: 'Configuration of the base branch is invalid', zh: '基线分支的配置无效' },
  'check.jobs.more': { en: '{x:text} (+{n:int} jobs)', zh: '{x:text}（另有 {n:int} 个任务）' },
  'check.annotation': { en: '{title:text}, {saving:text} per step', zh: '{title:text}，每迭代{saving:text}' },

  // as a step of a workflow
  'action.settings': { en: 'Settings: {files:text}', zh: '配置：{files:text}' },
  'action.settings.none': { en: 'Settings: none found at {ref:text}, the defaults apply', zh: '配置：在 {ref:text} 未找到，使用默认值' },
  'action.settings.invalid': {
    en: 'The settings cannot be used; nothing is analysed until they are repaired',
    zh: '配置无法使用；修复之前不做分析',
  },
  'action.failed': { en: 'The gate failed', zh: '门禁不通过' },
  'action.missing': { en: 'No profile: {why:text}', zh: '没有 profile：{why:text}' },
  'action.no-comment': {
    en: 'The token may not comment here, as in runs of forks. docs/actions.md has the pair of workflows that can.',
    zh: '此处的令牌无权评论（fork 的运行即如此）。可用的双工作流写法见 docs/actions.md。',
  },

  // several jobs
  'jobs.job': { en: 'Job', zh: '任务' },
  'jobs.verdict': { en: 'Verdict', zh: '结论' },
  'jobs.untouched': {
    en: 'Not changed by this pull request, so not looked at: {names:code}.',
    zh: '本 PR 未改动、因此未检查的任务：{names:code}。',
  },
  'jobs.untouched.title': { en: 'No training job is changed', zh: '没有改动训练任务' },
  'jobs.untouched.all': {
    en: 'This pull request changes none of the files that the settings name for {names:code}. `/npu-advise run` looks at their profiles all the same.',
    zh: '本 PR 未改动配置中为 {names:code} 列出的文件。仍需检查时请使用 `/npu-advise run`。',
  },

  // review
  'review.first': { en: '{title:text}: {saving:text} per step{range:text}.', zh: '{title:text}：每迭代{saving:text}{range:text}。' },
  'review.first.plain': { en: '{title:text}.', zh: '{title:text}。' },
  'review.from': { en: 'From cause {n:int} of the', zh: '来自原因 {n:int}，见' },
  'review.summary': { en: 'summary', zh: '汇总评论' },
  'review.by-hand': { en: 'Change by hand; it is not a one-click suggestion:', zh: '需手动修改，不提供一键应用：' },
  'review.body.one': { en: '1 suggested change from the profile of {sha:code}.', zh: '根据 {sha:code} 的 profile 提出 1 处修改建议。' },
  'review.body.many': {
    en: '{n:int} suggested changes from the profile of {sha:code}.',
    zh: '根据 {sha:code} 的 profile 提出 {n:int} 处修改建议。',
  },
  'review.body.why': { en: 'Causes, costs and evidence are in the', zh: '原因、耗时与证据见' },

  // terminal
  'text.place': { en: 'Where', zh: '位置' },
  'text.confidence': { en: 'confidence {confidence:text}', zh: '置信度：{confidence:text}' },
  'text.breakdown': { en: 'Step breakdown, ms, the median step of each rank', zh: '迭代耗时构成（毫秒，每张卡取中位迭代）' },
  'text.rows-cut': { en: '{n:int} more rows with `--format json`.', zh: '另有 {n:int} 行，见 `--format json`。' },
  'text.files.one': { en: '1 file used, {bytes:bytes}', zh: '使用 1 个文件，{bytes:bytes}' },
  'text.files.many': { en: '{n:int} files used, {bytes:bytes}', zh: '使用 {n:int} 个文件，{bytes:bytes}' },

  // no profile
  'missing-profile.workflow': { en: 'Workflow', zh: '工作流' },
  'missing-profile.run': { en: 'run', zh: '运行记录' },
  'missing-profile.ended': {
    en: 'finished, but none of its artifacts matches {patterns:code}.',
    zh: '已结束，但没有名称匹配 {patterns:code} 的 artifact。',
  },
  'missing-profile.ended-alone': {
    en: 'The workflow finished, but none of its artifacts matches {patterns:code}.',
    zh: '工作流已结束，但没有名称匹配 {patterns:code} 的 artifact。',
  },
  'missing-profile.uploaded': { en: 'It uploaded: {names:code}.', zh: '实际上传了：{names:code}。' },
  'missing-profile.uploaded-more': { en: 'It uploaded: {names:code} and {n:int} more.', zh: '实际上传了：{names:code} 等 {n:int} 个。' },
  'missing-profile.uploaded-none': { en: 'It uploaded nothing.', zh: '没有上传任何 artifact。' },
  'missing-profile.no-run': {
    en: 'No workflow run that uploads {patterns:code} finished for this commit.',
    zh: '这次提交没有上传 {patterns:code} 的工作流运行结束。',
  },
  'missing-profile.no-run-in': {
    en: 'No workflow run that uploads {patterns:code} finished within {n:int} minutes.',
    zh: '{n:int} 分钟内没有上传 {patterns:code} 的工作流运行结束。',
  },
  'missing-profile.expired': {
    en: 'Artifact {artifact:code} was deleted by the host before it was read. Run the workflow again to make a new one.',
    zh: 'artifact {artifact:code} 在读取之前已被平台删除。重新运行工作流即可生成。',
  },
  'missing-profile.expired-at': {
    en: 'Artifact {artifact:code} was deleted by the host on {at:code} before it was read. Run the workflow again to make a new one.',
    zh: 'artifact {artifact:code} 已于 {at:code} 被平台删除，未能读取。重新运行工作流即可生成。',
  },
  'missing-profile.corrupt': {
    en: 'Artifact {artifact:code} is damaged: {detail:text} Upload it again; `actions/upload-artifact` makes a sound archive.',
    zh: 'artifact {artifact:code} 已损坏：{detail:text}重新上传即可；`actions/upload-artifact` 会生成完好的压缩包。',
  },
  'missing-profile.too-large': {
    en: 'Artifact {artifact:code} has {size:bytes}, this installation reads up to {limit:bytes}. Upload the output of `npu-advise digest` instead: same report, a few MB.',
    zh: 'artifact {artifact:code} 大小为 {size:bytes}，此处最多读取 {limit:bytes}。改为上传 `npu-advise digest` 的输出：报告相同，只有几 MB。',
  },
  'missing-profile.empty': {
    en: 'Artifact {artifact:code} holds no Ascend profile. Upload the `*_ascend_pt` folder of every rank.',
    zh: 'artifact {artifact:code} 中没有 Ascend profile。上传每张卡的 `*_ascend_pt` 目录。',
  },
  'missing-profile.empty-known': { en: 'Artifact {artifact:code}: {detail:text}', zh: 'artifact {artifact:code}：{detail:text}' },

  // running, error, configuration
  'running.waiting': {
    en: 'The comment follows when the workflow has uploaded its profile.',
    zh: '工作流上传 profile 后，结果会显示在这里。',
  },
  'running.analysing': {
    en: 'The profile has arrived and is being read. The result replaces this text.',
    zh: 'profile 已收到，正在读取。结果会替换这段文字。',
  },
  'running.queue': { en: 'Another profile is being analysed first.', zh: '正在先分析另一份 profile。' },
  'running.download': { en: 'Downloaded: {done:bytes} of {total:bytes}.', zh: '已下载 {done:bytes}，共 {total:bytes}。' },
  'running.read': {
    en: 'Read: {done:bytes} of {total:bytes}, {ranks:int} of {all:int} ranks done.',
    zh: '已读取 {done:bytes}，共 {total:bytes}；{all:int} 张卡中已完成 {ranks:int} 张。',
  },
  'running.diagnose': {
    en: 'All ranks are read. The steps are replayed and the rules applied.',
    zh: '各卡均已读取，正在回放迭代并执行各项检查。',
  },
  'running.since': { en: 'Running since {at:text} UTC ({minutes:int} min).', zh: '开始于 UTC {at:text}，已运行 {minutes:int} 分钟。' },
  'error.again': { en: '`/npu-advise rerun` tries again.', zh: '`/npu-advise rerun` 可重试。' },
  'error.again.run': { en: 'Running the job again tries again.', zh: '重新运行该 job 可重试。' },
  'error.id': { en: 'Operator log: {id:code}', zh: '运维日志编号：{id:code}' },
  'settings.title.valid': { en: 'Settings are valid', zh: '配置有效' },
  'settings.title.uncertain': { en: 'Settings cannot be checked in full', zh: '配置无法完整检查' },
  'settings.uncertain': {
    en: '{file:code} itself is valid; what it extends cannot be read here.',
    zh: '{file:code} 本身有效，但此处无法读取它继承的配置。',
  },
  'settings.title.invalid': { en: 'Settings are invalid', zh: '配置无效' },
  'settings.valid': { en: '{file:code} can be used as this pull request writes it.', zh: '本 PR 修改后的 {file:code} 可以使用。' },
  'settings.invalid': {
    en: '{file:code} cannot be used as this pull request writes it. Merged like this, it stops every analysis until it is repaired.',
    zh: '本 PR 修改后的 {file:code} 无法使用。若照此合并，修复之前不会再做任何分析。',
  },
  'settings.base': {
    en: 'It is only checked here: this pull request itself is judged by the settings of its base branch.',
    zh: '此处只做检查：本 PR 自身仍按基线分支的配置处理。',
  },
  'config.line': { en: 'Line', zh: '行' },
  'config.problem': { en: 'Problem', zh: '问题' },
  'config.what': {
    en: '{file:code} on the base branch cannot be used; nothing is analysed until it is repaired. `npu-advise config validate` checks it.',
    zh: '基线分支上的 {file:code} 无法使用；修复之前不做分析。可用 `npu-advise config validate` 检查。',
  },

  // history
  'base.exact': {
    en: 'Base: {sha:code}, the merge base with {branch:code}, profiled {age:text}.',
    zh: '基线：{sha:code}，即与 {branch:code} 的合并基点，profile 采集时间：{age:text}。',
  },
  'base.fallback.one': {
    en: 'Base: {sha:code} on {branch:code}, profiled {age:text}. Fallback: the merge base {mergeBase:code} has no profile, this is the commit before it.',
    zh: '基线：{branch:code} 上的 {sha:code}，profile 采集时间：{age:text}。备用基线：合并基点 {mergeBase:code} 没有 profile，此为其前 1 个提交。',
  },
  'base.fallback.many': {
    en: 'Base: {sha:code} on {branch:code}, profiled {age:text}. Fallback: the merge base {mergeBase:code} has no profile, this is {n:int} commits before it.',
    zh: '基线：{branch:code} 上的 {sha:code}，profile 采集时间：{age:text}。备用基线：合并基点 {mergeBase:code} 没有 profile，此为其前 {n:int} 个提交。',
  },
  'base.age.now': { en: 'less than an hour ago', zh: '不到 1 小时前' },
  'base.age.hour': { en: '1 hour ago', zh: '1 小时前' },
  'base.age.hours': { en: '{n:int} hours ago', zh: '{n:int} 小时前' },
  'base.age.days': { en: '{n:int} days ago', zh: '{n:int} 天前' },
  'trend.step': { en: 'Step time', zh: '迭代耗时' },
  'trend.free': { en: 'Idle share', zh: '空闲占比' },
  'trend.exposed': { en: 'Exposed communication', zh: '未掩盖通信' },
  'trend.cause': { en: 'Saving of {rule:code}', zh: '{rule:code} 可省' },
  'trend.line': {
    en: 'Step time of {branch:code} in {n:int} profiles: {before:text}, now {now:text} {course:code}',
    zh: '{branch:code} 最近 {n:int} 次 profile 的迭代耗时：{before:text}，本次 {now:text} {course:code}',
  },
  'trend.title': { en: 'Course on {branch:code}, {n:int} profiles', zh: '{branch:code} 上的走势，{n:int} 次 profile' },
  'trend.column.what': { en: 'Per step', zh: '每迭代' },
  'trend.column.before': { en: 'Median before (range)', zh: '之前的中位数（范围）' },
  'trend.column.now': { en: 'Now', zh: '本次' },
  'trend.column.course': { en: 'Course, newest right', zh: '走势（最新在右）' },

  // cut
  'section.heading': { en: 'verdict', zh: '结论' },
  'section.causes': { en: 'causes', zh: '原因' },
  'section.patch': { en: 'patch', zh: '补丁' },
  'section.missing': { en: 'what this profile could not tell', zh: '这份 profile 无法回答的问题' },
  'section.gate': { en: 'gate', zh: '门禁' },
  'section.comparison': { en: 'comparison with the baseline', zh: '与基线的对比' },
  'section.evidence': { en: 'evidence', zh: '证据' },
  'section.not-possible': { en: 'checks that were not possible', zh: '无法检查的项' },
  'section.fixed': { en: 'fixed causes', zh: '已修复的原因' },
  'section.problems': { en: 'problems', zh: '问题' },
  'section.how-to': { en: 'how to upload a profile', zh: '如何上传 profile' },
  'section.breakdown': { en: 'step breakdown', zh: '迭代耗时构成' },
  'section.checks': { en: 'checks', zh: '检查项' },
  'section.inputs': { en: 'inputs', zh: '输入' },
  'section.notes': { en: 'notes', zh: '说明' },
  'section.trend': { en: 'course on the base branch', zh: '基线分支上的走势' },
  'section.job': { en: 'job', zh: '作业' },
  'cut.linked': { en: 'Cut for length here: {sections:text}. The rest is in the', zh: '因长度限制在此截断：{sections:text}。其余内容见' },
  'cut.check': {
    en: 'Cut for length here: {sections:text}. The rest is in the check run of this commit.',
    zh: '因长度限制在此截断：{sections:text}。其余内容见本次提交的检查结果。',
  },
  'cut.report': {
    en: 'Cut for length here: {sections:text}. `npu-advise analyze --format json` has everything.',
    zh: '因长度限制在此截断：{sections:text}。完整内容见 `npu-advise analyze --format json`。',
  },
} as const satisfies Record<string, L10n>;

export type Word = keyof typeof WORDS;

/** A word or sentence in a language, as prose. */
export function word(key: Word, lang: Lang, params: Readonly<Record<string, ParamValue>> = {}): string {
  return fill(WORDS[key], params, lang);
}
