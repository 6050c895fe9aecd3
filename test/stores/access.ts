/**
 * The smallest access that locks work with: the line in docs/api.md. In the places of `LOCK_*` stand the names of all lock
 * keys, with the client's keyPrefix before both.
 */
export const SMALLEST_ACCESS =
  "~LOCK_* ~lockweave:2:* &lockweave:2:* +eval +evalsha +set +get +mget +del +unlink +exists +pexpire +pttl +time +zadd +zrem +zscore +zcount +zrangebyscore +zrevrange +zrevrangebyscore +publish +subscribe +info";
