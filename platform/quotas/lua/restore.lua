-- Write a reservation again that Redis lost with the last moments before it stopped. Counts no rate: it was counted.
--
-- KEYS  1 open reservations  2 reservation hash  3 mark of a settled request  4 5 6 leases of tenant, key, model
--       (and the budgets that the reservation names, in the same slot)
-- ARGV  1 request id  2 lease, ms, then pairs of fields for the reservation hash
if redis.call('EXISTS', KEYS[2], KEYS[3]) > 0 then return 0 end
local clock = redis.call('TIME')
local expires_ms = math.floor((clock[1] * 1000000 + clock[2]) / 1000) + tonumber(ARGV[2])
redis.call('ZADD', KEYS[1], expires_ms, ARGV[1])
for scope = 4, 6 do
  redis.call('ZADD', KEYS[scope], expires_ms, ARGV[1])
  redis.call('PEXPIRE', KEYS[scope], 10 * tonumber(ARGV[2]))
end
redis.call('HSET', KEYS[2], unpack(ARGV, 3))
-- A budget that is there was written by a history without this reservation; one that isn't will count it as it loads.
local reserved = redis.call('HGET', KEYS[2], 'reserved_tokens')
for i = 3, #ARGV, 2 do
  local budget = string.match(ARGV[i], '^budget:(.+)$')
  if budget and redis.call('EXISTS', budget) == 1 then redis.call('HINCRBY', budget, 'reserved', reserved) end
end
return 1
