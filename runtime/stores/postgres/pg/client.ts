// The part of `pg` that the adapter uses. It has no types of the package, because TypeScript reads this file even in applications without it.

/** A `Client` of `pg`. */
export interface PgClient {
  connect(): Promise<unknown>;
  query(statement: {
    readonly text: string;
    readonly values?: readonly unknown[];
  }): Promise<PgResult | PgResult[]>;
  on(event: string, listener: (argument: never) => void): unknown;
  end(): Promise<unknown>;
  /** Undefined for the clients of `pg-native`. */
  readonly connection?: { readonly stream?: { destroy(): unknown } };
}

export interface PgResult {
  readonly rows: readonly Readonly<Record<string, unknown>>[];
}

export type PgClientClass = new (options: object) => PgClient;

/** A `Pool` of `pg`. It keeps the class of its clients, and their options. */
export interface PgPoolFields {
  readonly Client: PgClientClass;
  readonly options: Readonly<Record<string, unknown>>;
}
