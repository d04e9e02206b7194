-- Take a place for one request in every scope at once, or in none.
--
-- KEYS  1 policy epoch  2 reservation hash  3 open reservations (zset: request id -> lease expiry, ms)
--       4 5 6 leases of tenant, key and model (zset: request id -> lease expiry, ms), then one for each limit:
--         concurrent: the leases it counts
--         rate:   hash, a leaky bucket: level (us until empty) at `seen` (us), `back` (us given back so far)
--         budget: hash: spent and reserved tokens; `loaded`: the run of Redis it was loaded in
-- ARGV  1 request id  2 principal's epoch  3 "1" if the principal was just loaded  4 lease, ms
--       5 tokens reserved  6 run of Redis  7 number of limits, then four for each:
--         "concurrent", value, 0, 0 | "requests" or "tokens", value a minute, capacity, 0
--         | "budget", value, start, end (Unix seconds)
--       then pairs of fields for the reservation hash
--
-- Answers {"stale"} | {"clock", now us}: a budget's period is not the present one
--       | {"cold", limit...}: these budgets must be loaded first
--       | {"full", limit, wait us, is final, now us, states} | {"ok", now us, states}
--         where states are, for each limit, what remains after this request and the us until it is whole again
local request_id, epoch, lease_ms = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[4])
local tokens, run, num_limits = tonumber(ARGV[5]), ARGV[6], tonumber(ARGV[7])
local FIRST_LIMIT_KEY, FIRST_LIMIT_ARG, SECOND = 6, 8, 1000000

local known_epoch = redis.call('GET', KEYS[1])
if ARGV[3] == '1' and (not known_epoch or tonumber(known_epoch) < epoch) then
  redis.call('SET', KEYS[1], ARGV[2])
elseif not known_epoch or tonumber(known_epoch) > epoch then
  return {'stale'}
end

local clock = redis.call('TIME')
local now_us = clock[1] * SECOND + clock[2]
local now_ms = math.floor(now_us / 1000)
local expires_ms = now_ms + lease_ms
local is_repeated = redis.call('EXISTS', KEYS[2]) == 1

-- Each measure answers: wait us (0: there is room), whether waiting is all that helps, remaining, reset us.
-- What it would take is kept in `changes`; nothing is written before all have room.
local changes, measures = {}, {}

function measures.concurrent(i, key, value)
  redis.call('ZREMRANGEBYSCORE', key, '-inf', now_ms)
  local room = value - redis.call('ZCARD', key)
  if is_repeated then return 0, false, room, 0 end
  if room < 1 then return SECOND, false, 0, 0 end
  return 0, false, room - 1, 0
end

local function measure_rate(i, key, value, capacity, cost)
  local state = redis.call('HMGET', key, 'level', 'seen')
  local step = 60 * SECOND / value
  local level = math.max(0, tonumber(state[1] or 0) - (now_us - tonumber(state[2] or now_us)))
  -- A request larger than the capacity waits for an empty bucket.
  local room, need = math.max(capacity, cost) * step, cost * step
  local wait = level + need - room
  local is_full = not is_repeated and wait > 0.001
  if not is_repeated and not is_full then
    level = level + need
    changes[i] = level
  end
  local remaining = math.max(0, math.floor((capacity * step - level) / step + 0.000001))
  return is_full and math.ceil(wait) or 0, false, remaining, math.ceil(level)
end

function measures.requests(i, key, value, capacity) return measure_rate(i, key, value, capacity, 1) end

function measures.tokens(i, key, value, capacity) return measure_rate(i, key, value, capacity, tokens) end

function measures.budget(i, key, value, starts_at, ends_at)
  local state = redis.call('HMGET', key, 'spent', 'reserved')
  local spent, reserved = tonumber(state[1] or 0), tonumber(state[2] or 0)
  local reset = ends_at * SECOND - now_us
  if is_repeated then return 0, false, math.max(0, value - spent - reserved), reset end
  if spent + tokens > value then return reset, true, math.max(0, value - spent - reserved), reset end
  if spent + reserved + tokens > value then return SECOND, false, value - spent - reserved, reset end
  return 0, false, value - spent - reserved - tokens, reset
end

local cold = {'cold'}
for i = 1, num_limits do
  local arg = FIRST_LIMIT_ARG + 4 * (i - 1)
  if ARGV[arg] == 'budget' then
    if now_us < tonumber(ARGV[arg + 2]) * SECOND or now_us >= tonumber(ARGV[arg + 3]) * SECOND then
      return {'clock', now_us}
    end
    if redis.call('HGET', KEYS[FIRST_LIMIT_KEY + i], 'loaded') ~= run then cold[#cold + 1] = i end
  end
end
if #cold > 1 and not is_repeated then return cold end

local states, longest, full, is_final = {}, 0, 0, 0
for i = 1, num_limits do
  local arg = FIRST_LIMIT_ARG + 4 * (i - 1)
  local wait, is_hard, remaining, reset = measures[ARGV[arg]](
    i, KEYS[FIRST_LIMIT_KEY + i], tonumber(ARGV[arg + 1]), tonumber(ARGV[arg + 2]), tonumber(ARGV[arg + 3]))
  states[#states + 1] = remaining
  states[#states + 1] = reset
  if wait > longest then longest, full, is_final = wait, i, is_hard and 1 or 0 end
end
if full > 0 then return {'full', full, longest, is_final, now_us, states} end

redis.call('ZADD', KEYS[3], expires_ms, request_id)
for scope = 4, 6 do
  redis.call('ZADD', KEYS[scope], expires_ms, request_id)
  redis.call('PEXPIRE', KEYS[scope], 10 * lease_ms)
end
if is_repeated then return {'ok', now_us, states} end

local fields = {'admitted_at', string.format('%.6f', now_us / SECOND)}
for i = 1, num_limits do
  local arg, key = FIRST_LIMIT_ARG + 4 * (i - 1), KEYS[FIRST_LIMIT_KEY + i]
  if ARGV[arg] == 'budget' then redis.call('HINCRBY', key, 'reserved', tokens) end
  if changes[i] then
    -- The bucket outlives everything that lies in it, so that what is given back later finds its place.
    local lasts_ms = math.max(math.ceil(changes[i] / 1000) + 1, redis.call('PTTL', key))
    redis.call('HSET', key, 'level', string.format('%.17g', changes[i]), 'seen', string.format('%.0f', now_us))
    redis.call('PEXPIRE', key, lasts_ms)
    local ends_us = string.format('%.0f', math.floor(now_us + changes[i]))
    fields[#fields + 1] = 'rate:' .. key
    local back = redis.call('HGET', key, 'back') or '0'
    fields[#fields + 1] = table.concat({ARGV[arg], ends_us, back, ARGV[arg + 1]}, ' ')
  end
end
for i = FIRST_LIMIT_ARG + 4 * num_limits, #ARGV do fields[#fields + 1] = ARGV[i] end
redis.call('HSET', KEYS[2], unpack(fields))
return {'ok', now_us, states}
