-- Add what the ledger says to budgets that this loader has begun; one that was made cold meanwhile stays cold.
--
-- KEYS  the budgets
-- ARGV  1 token of this loader  2 run of Redis, then for each budget: tokens spent
for b = 1, #KEYS do
  if redis.call('HGET', KEYS[b], 'loader') == ARGV[1] then
    redis.call('HINCRBY', KEYS[b], 'spent', ARGV[2 + b])
    redis.call('HSET', KEYS[b], 'loaded', ARGV[2])
    redis.call('HDEL', KEYS[b], 'loader', 'begun_ms')
  end
end
return redis.status_reply('OK')
