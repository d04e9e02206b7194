-- Close a reservation: free its places, move what it reserved to what it spent, append its ledger row; once.
--
-- KEYS  1 reservation hash  2 open reservations  3 ledger stream  4 mark of a settled request  5 6 7 leases
--       (and those that the reservation itself names, all in the same slot: its budgets and rates)
-- ARGV  1 request id
--       2 "settle": also if Redis has lost the reservation, which a missing mark tells
--         "expired": only if it is open and its lease ended before ARGV[3], ms
--         "release": give back everything and leave no row: the request was not admitted after all
--       3 see above  4 life of the mark, ms, then pairs of the row's fields, which win over the reservation's
--
-- Answers 1 if this call closed it, 2 if it wrote what Redis had lost, 0 if there was nothing to do.
local request_id, mode = ARGV[1], ARGV[2]
local held, is_open = {}, false
do
  local flat = redis.call('HGETALL', KEYS[1])
  for i = 1, #flat, 2 do held[flat[i]] = flat[i + 1] end
  is_open = #flat > 0
end
if mode == 'expired' then
  local expires_ms = redis.call('ZSCORE', KEYS[2], request_id)
  if not expires_ms or tonumber(expires_ms) > tonumber(ARGV[3]) then return 0 end
end
redis.call('ZREM', KEYS[2], request_id)
for scope = 5, 7 do redis.call('ZREM', KEYS[scope], request_id) end
if not is_open and (mode ~= 'settle' or redis.call('EXISTS', KEYS[4]) == 1) then return 0 end

local row = {}
for name, value in pairs(held) do row[name] = value end
for i = 5, #ARGV, 2 do row[ARGV[i]] = ARGV[i + 1] end
local reserved = tonumber(row.reserved_tokens or 0)
local billed = tonumber(row.prompt_tokens or 0) + tonumber(row.output_tokens or 0)
if mode == 'release' then billed = 0 end

-- Reserved becomes spent. What Redis had lost may be in the ledger by now, from which the budget then counts:
-- such a budget is made cold, to be loaded again with this row in it.
local function settle_budget(key)
  if redis.call('EXISTS', key) == 0 then return end
  if not is_open then return redis.call('DEL', key) end
  redis.call('HINCRBY', key, 'spent', billed)
  redis.call('HINCRBY', key, 'reserved', -reserved)
end

-- Give back what was not used and has not flowed out of the bucket yet. `ends`: when this request's share was
-- to have flowed out, seen from its admission; all that was given back since then moved it to an earlier time.
local function settle_rate(key, unit, ends, back_then, value)
  local unused = math.max(0, reserved - billed)
  if unit == 'requests' then unused = mode == 'release' and 1 or 0 end
  local bucket = redis.call('HMGET', key, 'level', 'back')
  if not bucket[1] then return end
  local clock = redis.call('TIME')
  local back = tonumber(bucket[2] or 0)
  local left = ends - (back - back_then) - (clock[1] * 1000000 + clock[2])
  local given = math.min(unused * 60000000 / value, math.max(0, left))
  redis.call('HSET', key, 'level', string.format('%.17g', tonumber(bucket[1]) - given),
    'back', string.format('%.17g', back + given))
end

local flat = {}
for name, value in pairs(row) do
  local kind, key = string.match(name, '^(%a+):(.+)$')
  if kind == 'budget' then
    settle_budget(key)
  elseif kind == 'rate' and held[name] then
    local unit, ends, back_then, limit = string.match(value, '^(%S+) (%S+) (%S+) (%S+)$')
    settle_rate(key, unit, tonumber(ends), tonumber(back_then), tonumber(limit))
  else
    flat[#flat + 1] = name
    flat[#flat + 1] = value
  end
end
redis.call('DEL', KEYS[1])
if mode ~= 'release' then
  redis.call('XADD', KEYS[3], '*', unpack(flat))
  redis.call('SET', KEYS[4], '1', 'PX', ARGV[4])
end
return is_open and 1 or 2
