#!/usr/bin/env node
const [major = 0, minor = 0] = process.versions.node.split('.').map(Number);
if (major < 22 || (major === 22 && minor < 13)) {
  const isChinese = /^zh/i.test(process.env.LC_ALL || process.env.LC_MESSAGES || process.env.LANG || '');
  console.error(
    isChinese
      ? `npu-advise 需要 Node 22.13 或更新版本（当前为 ${process.versions.node}）；在克隆的仓库中请先运行“npm ci”，它会安装 Node 24。`
      : `npu-advise needs Node 22.13 or newer (this is ${process.versions.node}); in a clone run "npm ci" first, it brings Node 24.`,
  );
  process.exit(2);
}
const { existsSync } = await import('node:fs');
const built = new URL('../dist/cli/main.js', import.meta.url);
const source = new URL('../src/cli/main.ts', import.meta.url);
await import(existsSync(source) ? source.href : built.href);
