import type { Database, Delivery, Inbox, InboxReader } from '../ports.ts';

/** Deliveries in a shared table, so that any process may pick up what another one accepted. */
export function openPostgresInbox(database: Database): Inbox & InboxReader {
  return {
    async accept({ guid, event, receivedAt, body }) {
      const rows = await database.query<{ fresh: boolean }>(
        `INSERT INTO npu_advisor.deliveries (guid, event, received_at, body) VALUES ($1, $2, $3, $4)
         ON CONFLICT (guid) DO UPDATE SET state = 'accepted', body = excluded.body
         RETURNING (xmax = 0) AS fresh`,
        [guid, event, receivedAt, body],
      );
      return rows[0]?.fresh === true ? 'accepted' : 'duplicate';
    },
    async pending(limit) {
      const rows = await database.query<{ guid: string; event: string; received_at: string; body: string }>(
        `SELECT guid, event, received_at, body FROM npu_advisor.deliveries
         WHERE state = 'accepted' AND body IS NOT NULL ORDER BY received_at LIMIT $1`,
        [limit],
      );
      return rows.map((row): Delivery => ({ guid: row.guid, event: row.event, receivedAt: Number(row.received_at), body: row.body }));
    },
    async release(guid) {
      await database.query(`UPDATE npu_advisor.deliveries SET state = 'routed', body = NULL WHERE guid = $1`, [guid]);
    },
    async close() {},
  };
}
