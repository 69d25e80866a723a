import type { Database, Delivery, Inbox, InboxReader } from '../ports.ts';

/** A process that took deliveries and says nothing more for so long is gone: they are for the next one. */
const TAKEN_MS = 15_000;

/** The clock of the database, so that processes on machines whose clocks differ agree. */
const NOW = '(extract(epoch FROM clock_timestamp()) * 1000)::bigint';

/** Deliveries in a shared table, so that any process may pick up what another one accepted. */
export function openPostgresInbox(database: Database): Inbox & InboxReader {
  return {
    async accept({ guid, event, receivedAt, body }) {
      const rows = await database.query<{ fresh: boolean }>(
        `INSERT INTO npu_advisor.deliveries (guid, event, received_at, body) VALUES ($1, $2, $3, $4)
         ON CONFLICT (guid) DO UPDATE SET state = 'accepted', body = excluded.body, taken_at = NULL
         RETURNING (xmax = 0) AS fresh`,
        [guid, event, receivedAt, body],
      );
      return rows[0]?.fresh === true ? 'accepted' : 'duplicate';
    },
    async pending(limit) {
      // Each is taken by one process; many of them ask every second.
      const rows = await database.query<{ guid: string; event: string; received_at: string; body: string }>(
        `UPDATE npu_advisor.deliveries SET taken_at = ${NOW} WHERE guid IN (
           SELECT guid FROM npu_advisor.deliveries
           WHERE state = 'accepted' AND body IS NOT NULL AND (taken_at IS NULL OR taken_at < ${NOW} - ${TAKEN_MS})
           ORDER BY received_at LIMIT $1 FOR UPDATE SKIP LOCKED)
         RETURNING guid, event, received_at, body`,
        [limit],
      );
      return rows
        .map((row): Delivery => ({ guid: row.guid, event: row.event, receivedAt: Number(row.received_at), body: row.body }))
        .sort((a, b) => a.receivedAt - b.receivedAt);
    },
    async release(guid) {
      await database.query(`UPDATE npu_advisor.deliveries SET state = 'routed', body = NULL, taken_at = NULL WHERE guid = $1`, [guid]);
    },
    async close() {},
  };
}
