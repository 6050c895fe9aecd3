/** A client that the user gives to Lockweave, and closes. Lockweave only reads its options, and opens its own connections with them. */
export type GivenPostgres = PgPool | PostgresJs;

/**
 * A `Pool` of `pg`. It has no exact type here, because TypeScript reads this file even in applications without `pg`. A `Client` and a client
 * of a pool lack `totalCount`.
 */
export interface PgPool {
  readonly totalCount: number;
  readonly idleCount: number;
  readonly options: object;
  connect(...args: never[]): unknown;
  query(...args: never[]): unknown;
}

/**
 * A client of postgres.js (the package `postgres`). It has no exact type here, because TypeScript reads this file even in applications without
 * it. A transaction and a reserved connection lack `reserve` or `begin`.
 */
export interface PostgresJs {
  readonly options: object;
  unsafe(...args: never[]): unknown;
  listen(...args: never[]): unknown;
  reserve(...args: never[]): unknown;
  begin(...args: never[]): unknown;
}
