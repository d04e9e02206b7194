-- Close a reservation: free its places and append its ledger row, once.
--
-- KEYS  1 reservation hash  2 open reservations  3 ledger stream  4 tenant's leases  5 key's leases
-- ARGV  1 request id
--       2 "settle": only what is open; "again": append even if nothing is open (Redis may have lost the first
--         answer; the ledger takes each request id once); "expired": only if the lease ended before ARGV[3], ms;
--         "release": free the places without a row, for a request that was never admitted after all
--       3 see above, then pairs of the row's fields, which win over those of the reservation
--
-- Answers 1 if this call closed it, 2 if the row was only appended again, 0 if there was nothing to do.
local request_id, mode = ARGV[1], ARGV[2]
local is_open = redis.call('EXISTS', KEYS[1]) == 1
if mode == 'expired' then
  local expires_ms = redis.call('ZSCORE', KEYS[2], request_id)
  if not expires_ms or tonumber(expires_ms) > tonumber(ARGV[3]) then return 0 end
end
redis.call('ZREM', KEYS[2], request_id)
redis.call('ZREM', KEYS[4], request_id)
redis.call('ZREM', KEYS[5], request_id)
if not is_open and mode ~= 'again' then return 0 end

if mode ~= 'release' then
  local row = {}
  local held = redis.call('HGETALL', KEYS[1])
  for i = 1, #held, 2 do row[held[i]] = held[i + 1] end
  for i = 4, #ARGV, 2 do row[ARGV[i]] = ARGV[i + 1] end
  local flat = {}
  for name, value in pairs(row) do
    flat[#flat + 1] = name
    flat[#flat + 1] = value
  end
  redis.call('XADD', KEYS[3], '*', unpack(flat))
end
redis.call('DEL', KEYS[1])
return is_open and 1 or 2
