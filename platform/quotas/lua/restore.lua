-- Write a reservation again that Redis lost with the last moments before it stopped. Counts no rate: it was counted.
--
-- KEYS  1 open reservations  2 reservation hash  3 tenant's leases  4 key's leases
-- ARGV  1 request id  2 lease, ms, then pairs of fields for the reservation hash
if redis.call('EXISTS', KEYS[2]) == 1 then return 0 end
local clock = redis.call('TIME')
local expires_ms = math.floor((clock[1] * 1000000 + clock[2]) / 1000) + tonumber(ARGV[2])
redis.call('ZADD', KEYS[1], expires_ms, ARGV[1])
for scope = 3, 4 do
  redis.call('ZADD', KEYS[scope], expires_ms, ARGV[1])
  redis.call('PEXPIRE', KEYS[scope], 10 * tonumber(ARGV[2]))
end
redis.call('HSET', KEYS[2], unpack(ARGV, 3))
return 1
