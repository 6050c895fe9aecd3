/**
 * The smallest access that locks need, as in docs/api.md. `LOCK_*` stands for the names of all lock keys. The client's
 * keyPrefix precedes both patterns.
 */
export const SMALLEST_ACCESS =
  "~LOCK_* ~lockweave:1:* &lockweave:1:* +eval +evalsha +set +get +mget +del +unlink +exists +pexpire +pttl +time +zadd +zrem +zscore +zcount +zrangebyscore +zrevrange +zrevrangebyscore +publish +subscribe +info";
