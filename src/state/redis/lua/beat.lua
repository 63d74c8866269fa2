-- Shows that a process lives, and forgets those that are long gone.
-- KEYS: owners, epoch, replid, quarantine. ARGV: owner, how long the gone are kept ms, quarantine ms.
check_master(KEYS[3], KEYS[2], KEYS[4], ARGV[3])
redis.call('HSET', KEYS[1], ARGV[1], now)
local owners = redis.call('HGETALL', KEYS[1])
for at = 1, #owners, 2 do
  if now - tonumber(owners[at + 1]) > tonumber(ARGV[2]) then redis.call('HDEL', KEYS[1], owners[at]) end
end
return now
