-- In front of every script: the clock of the server, and what a process that is gone leaves behind.
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)

-- Whether a process has shown within its lease that it lives.
local function lives(owners, owner, lease)
  local seen = redis.call('HGET', owners, owner)
  return seen and now - tonumber(seen) < tonumber(lease)
end

-- A new owner never shares a cart with an old one, and the old one's writes must fail.
local function leave_cart(session)
  local known = redis.call('HMGET', session, 'version', 'attempt', 'ended')
  if known[1] and not known[2] and known[3] ~= '1' then
    redis.call('HINCRBY', session, 'version', 1)
    redis.call('HSET', session, 'left', '1')
  end
end

-- Notices that the server is not the one that was written to before: its newest writes may be gone. From then on
-- sessions count as written in an older epoch, and no order is placed for a while.
local function check_master(replid, epoch, quarantine, quarantine_ms)
  local id = string.match(redis.call('INFO', 'replication'), 'master_replid:(%w+)')
  local known = redis.call('GET', replid)
  if known == id then return end
  redis.call('SET', replid, id)
  if known then
    redis.call('INCR', epoch)
    redis.call('SET', quarantine, now + tonumber(quarantine_ms))
  end
end
