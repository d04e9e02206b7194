-- Take a place for one request in every scope at once, or in none.
--
-- KEYS  1 policy epoch  2 reservation hash  3 open reservations (zset: request id -> lease expiry, ms)
--       then for each scope (tenant, key): leases (zset: request id -> expiry, ms), rate (GCRA arrival time, us)
-- ARGV  1 request id  2 principal's epoch  3 "1" if the principal was just loaded  4 lease, ms
--       5 number of scopes, then for each: max concurrent, requests/min, burst (-1: no limit)
--       then pairs of fields for the reservation hash
--
-- Answers {"stale"} | {"concurrency", scope, limit} | {"rate", scope, limit, retry us, reset us}
--       | {"ok", scope or 0, limit, remaining, reset us} of the tightest rate limit (0: none), now us
local request_id, epoch, lease_ms = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[4])
local num_scopes = tonumber(ARGV[5])

local known_epoch = redis.call('GET', KEYS[1])
if ARGV[3] == '1' and (not known_epoch or tonumber(known_epoch) < epoch) then
  redis.call('SET', KEYS[1], ARGV[2])
elseif not known_epoch or tonumber(known_epoch) > epoch then
  return {'stale'}
end

local clock = redis.call('TIME')
local now_us = clock[1] * 1000000 + clock[2]
local now_ms = math.floor(now_us / 1000)
local expires_ms = now_ms + lease_ms
local is_repeated = redis.call('EXISTS', KEYS[2]) == 1

-- Look at every scope first; nothing is written before all have room.
local arrivals, tightest = {}, {0, 0, 0, 0}
for scope = 1, num_scopes do
  local leases, rate = KEYS[2 + 2 * scope], KEYS[3 + 2 * scope]
  local max_concurrent = tonumber(ARGV[3 + 3 * scope])
  local per_minute, burst = tonumber(ARGV[4 + 3 * scope]), tonumber(ARGV[5 + 3 * scope])
  redis.call('ZREMRANGEBYSCORE', leases, '-inf', now_ms)
  if max_concurrent >= 0 and not is_repeated and redis.call('ZCARD', leases) >= max_concurrent then
    return {'concurrency', scope, max_concurrent}
  end
  if per_minute >= 0 then
    -- GCRA: at most burst + rate x t requests pass in any interval t.
    local interval = math.ceil(60000000 / per_minute)
    local tolerance = interval * (burst - 1)
    local arrival = math.max(tonumber(redis.call('GET', rate) or '0'), now_us)
    if not is_repeated then
      if arrival - now_us > tolerance then
        return {'rate', scope, per_minute, arrival - now_us - tolerance, arrival - now_us}
      end
      arrival = arrival + interval
      arrivals[scope] = arrival
    end
    local remaining = math.max(0, math.floor((tolerance - (arrival - now_us)) / interval) + 1)
    if tightest[1] == 0 or remaining < tightest[3] then
      tightest = {scope, per_minute, remaining, arrival - now_us}
    end
  end
end

for scope = 1, num_scopes do
  local leases, rate = KEYS[2 + 2 * scope], KEYS[3 + 2 * scope]
  redis.call('ZADD', leases, expires_ms, request_id)
  redis.call('PEXPIRE', leases, 10 * lease_ms)
  if arrivals[scope] then
    local rest_ms = math.ceil((arrivals[scope] - now_us) / 1000)
    redis.call('SET', rate, string.format('%.0f', arrivals[scope]), 'PX', rest_ms)
  end
end
redis.call('ZADD', KEYS[3], expires_ms, request_id)
if not is_repeated then
  local fields = {'admitted_at', string.format('%.6f', now_us / 1000000)}
  for i = 6 + 3 * num_scopes, #ARGV do fields[#fields + 1] = ARGV[i] end
  redis.call('HSET', KEYS[2], unpack(fields))
end
return {'ok', tightest[1], tightest[2], tightest[3], tightest[4], now_us}
