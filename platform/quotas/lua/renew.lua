-- Renew live leases of one bucket, write the tokens so far, read the policy epochs.
--
-- KEYS  1 open reservations, then for each lease: reservation hash, mark of a settled request,
--         leases of tenant, key and model, policy epoch
-- ARGV  1 lease, ms, then for each lease: request id, prompt, cached, output, overrun tokens, first token at ("": none)
--
-- Answers for each lease {1: renewed, 0: Redis has lost it, -1: it was settled; policy epoch or -1}.
local clock = redis.call('TIME')
local expires_ms = math.floor((clock[1] * 1000000 + clock[2]) / 1000) + tonumber(ARGV[1])
local answers = {}
for i = 0, (#ARGV - 1) / 6 - 1 do
  local key, arg = 2 + 6 * i, 2 + 6 * i
  local request_id = ARGV[arg]
  local is_known = redis.call('EXISTS', KEYS[key])
  if is_known == 1 then
    redis.call('HSET', KEYS[key], 'prompt_tokens', ARGV[arg + 1], 'cached_tokens', ARGV[arg + 2],
      'output_tokens', ARGV[arg + 3], 'overrun_tokens', ARGV[arg + 4], 'first_token_at', ARGV[arg + 5])
    redis.call('ZADD', KEYS[1], expires_ms, request_id)
    for scope = 2, 4 do
      redis.call('ZADD', KEYS[key + scope], expires_ms, request_id)
      redis.call('PEXPIRE', KEYS[key + scope], 10 * tonumber(ARGV[1]))
    end
  elseif redis.call('EXISTS', KEYS[key + 1]) == 1 then
    is_known = -1
  end
  answers[#answers + 1] = {is_known, tonumber(redis.call('GET', KEYS[key + 5]) or '-1')}
end
return answers
