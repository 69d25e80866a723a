import { both } from './bilingual.ts';

/** What makes core binding silently do nothing. */
export const AFFINITY_NOTE = both(
  'The container or launcher does not restrict CPU cores already; otherwise the setting is skipped with a warning.',
  '容器或启动器未限制可用 CPU 核；否则该设置会被跳过并告警。',
);
