-- Begin to load cold budgets. From this moment on they count what is reserved and settled; what was settled
-- before is in the ledger or, as answered here, still in the stream.
--
-- KEYS  1 open reservations  2 ledger stream, then the budgets (the reservations lie in the same slot)
-- ARGV  1 token of this loader  2 patience with another loader, ms  3 prefix of reservation hashes  4 run of Redis
--       then for each budget: field that names its subject (tenant_id, key_id, model), tenant id, subject,
--         start, end (Unix seconds)
--
-- Answers {"busy"} while another loader is at work, else {"begun", {request id, budget, tokens}...}: rows in the stream,
-- and with -1 for tokens open requests, which count here when they settle, also if their row is in the ledger by then.
local clock = redis.call('TIME')
local now_ms = clock[1] * 1000 + math.floor(clock[2] / 1000)
local mine = {}
for b = 1, #KEYS - 2 do
  local state = redis.call('HMGET', KEYS[2 + b], 'begun_ms', 'loaded')
  if state[1] and now_ms - tonumber(state[1]) < tonumber(ARGV[2]) then return {'busy'} end
  if state[2] ~= ARGV[4] then mine[#mine + 1] = b end
end

local function arg(b, n) return ARGV[4 + 5 * (b - 1) + n] end

local function is_counted(b, row)
  local at = tonumber(row.admitted_at or 0)
  return row.tenant_id == arg(b, 2) and row[arg(b, 1)] == arg(b, 3)
    and at >= tonumber(arg(b, 4)) and at < tonumber(arg(b, 5))
end

local function as_table(flat)
  local row = {}
  for i = 1, #flat, 2 do row[flat[i]] = flat[i + 1] end
  return row
end

for _, b in ipairs(mine) do
  local key = KEYS[2 + b]
  redis.call('DEL', key)
  redis.call('HSET', key, 'spent', 0, 'reserved', 0, 'loader', ARGV[1], 'begun_ms', now_ms)
  redis.call('EXPIREAT', key, arg(b, 5) + 86400)
end
local waiting = {'begun'}
for _, request_id in ipairs(redis.call('ZRANGE', KEYS[1], 0, -1)) do
  local name = ARGV[3] .. request_id
  local row = as_table(redis.call('HGETALL', name))
  for _, b in ipairs(mine) do
    if is_counted(b, row) then
      redis.call('HSET', name, 'budget:' .. KEYS[2 + b], 1)
      redis.call('HINCRBY', KEYS[2 + b], 'reserved', row.reserved_tokens)
      waiting[#waiting + 1] = {request_id, b, -1}
    end
  end
end

for _, entry in ipairs(redis.call('XRANGE', KEYS[2], '-', '+')) do
  local row = as_table(entry[2])
  for _, b in ipairs(mine) do
    if is_counted(b, row) then
      local tokens = tonumber(row.prompt_tokens or 0) + tonumber(row.output_tokens or 0)
      waiting[#waiting + 1] = {row.request_id, b, tokens}
    end
  end
end
return waiting
