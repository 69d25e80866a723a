import type { Lang } from '../model/lang.ts';

/** Comments in the code that remedies show, by the English one. Code itself has no language. */
export const COMMENTS: Readonly<Record<string, string>> = {
  'launch script': '启动脚本',
  'launch script, before python starts': '启动脚本，在 python 启动之前',
  'launch script of every rank, before python starts': '每张卡的启动脚本，在 python 启动之前',
  'before the training loop': '训练循环之前',
  'the same step on every rank': '所有卡在同一迭代',
  'the same step on all ranks': '所有卡在同一迭代',
  'weights are cast once in here': '权重只在此处转换一次',
  'outside: the copies are gone': '区域之外：副本已释放',
  'stays on the card': '保留在卡上',
  'the first half of the last axis is the gate': '最后一个轴的前一半为门控',
  'ms; torch_npu 6.0.rc3 or newer': '单位 ms；torch_npu 6.0.rc3 及以上',
  'not recorded by the profiler itself': 'profiler 自身不记录这些变量',
  'without this nothing is recorded': '缺少这一行则什么也不会记录',
  'without it nothing is recorded': '缺少这一行则什么也不会记录',
  'x[mask] = y, y broadcasts to x': 'x[mask] = y，y 可广播到 x',
  'x[idx], idx 1-D': 'x[idx]，idx 为一维',
  'torch.nonzero(mask) only to count': '仅为计数的 torch.nonzero(mask)',
  'vllm serve takes it as --compilation-config': 'vllm serve 对应 --compilation-config',
  'what the training loop did to each batch': '原先在训练循环中对每个 batch 所做的处理',
  'other arguments stay as they are': '其他参数保持不变',
  'above 0: the workers run collate': '大于 0：由 worker 执行 collate',
  'keeps the graph of every step': '会留住每个迭代的计算图',
  'one tensor without a graph': '只有一个张量，不带计算图',
  'a number, read rarely: it synchronises the card': '一个数值，读取次数少：读取会同步',
  'torch 2.1 to 2.6: also pin_memory_device="npu"': 'torch 2.1 至 2.6 还需 pin_memory_device="npu"',
  'the suspected code': '可疑代码',
  'add to the capture options in use': '加入现有的采集选项',
  'msprof_tx=True before torch_npu 7.2.0': 'torch_npu 7.2.0 之前为 msprof_tx=True',
  ms: '单位 ms',
  '(batch, heads, length, head size)': '依次为 batch、head 数、长度、head 维度',
  'then up to CPU cores / cards of the host': '之后可增至主机 CPU 核数 / 卡数',
  'keep the workers between epochs': '各 epoch 之间保留 worker',
  'batches each worker prepares ahead': '每个 worker 提前准备的 batch 数',
  'below CPU cores / cards of the host': '小于主机 CPU 核数 / 卡数',
  'next multiple of 256 elements of half precision': '向上取到 256 个半精度元素的整数倍',
  'reduces during loss.backward()': '在 loss.backward() 期间归约',
  'exactly when the optimizer steps': '恰好在优化器更新时',
  'forward and backward inside': '前向与反向都在其中',
  'before the backward': '反向之前',
  'after model, optimizer and loader exist, before the loop': '模型、优化器与 DataLoader 创建之后，循环之前',
  'after model, optimizer and loader are built': '模型、优化器与 DataLoader 创建之后',
  'one process per card, started by torchrun': '每张卡一个进程，由 torchrun 启动',
  'top of the entry script, never in a loop': '入口脚本的开头，不放在循环中',
  'before any tensor is created': '在创建任何张量之前',
  'on the stream that produces': '在产生数据的流上',
  'on the stream that reads': '在读取数据的流上',
  'in place of x[mask] = y': '代替 x[mask] = y',
  'in place of x[mask] = 0': '代替 x[mask] = 0',
  'not w.transpose(-2, -1).contiguous()': '不用 w.transpose(-2, -1).contiguous()',
  'not k.transpose(-2, -1).contiguous()': '不用 k.transpose(-2, -1).contiguous()',
  'not .contiguous().view(b, s, -1); same values': '不用 .contiguous().view(b, s, -1)；数值相同',
};

/** The same code with its comments in the language of the report. A comment that is code, or quotes some, stays. */
export function withComments(code: string, lang: Lang): string {
  if (lang === 'en') return code;
  return code.replace(/(^|\s)# (.+)$/gm, (whole, before: string, comment: string) => {
    const zh = COMMENTS[comment.trim()];
    return zh === undefined ? whole : `${before}# ${zh}`;
  });
}
