const REPOSITORY = 'https://github.com/Ascend';

function link(repository: string, path: string): string {
  return encodeURI(`${REPOSITORY}/${repository}/blob/master/${path}`);
}

/** A page of the torch_npu documentation. */
export function torchNpuPage(path: string): string {
  return link('pytorch', `docs/zh/${path}`);
}

/** The page of an environment variable, e.g. `op_execution/TASK_QUEUE_ENABLE`. */
export function variablePage(path: string): string {
  return torchNpuPage(`api/environment_variable/${path}.md`);
}

/** The page of a torch_npu API, e.g. `torch_npu-npu/torch_npu-npu-mstx`. */
export function apiPage(path: string): string {
  return link('op-plugin', `docs/zh/custom_APIs/${path}.md`);
}

export function msprofAnalyzePage(path: string): string {
  return link('msprof-analyze', path);
}

export function torchPage(path: string): string {
  return `https://docs.pytorch.org/docs/stable/${path}`;
}
