-- Takes what the shop said, gives back what a session holds; returns the sequence.
-- KEYS: owners, sequence, index of shelves, then the shelves. ARGV: the step as JSON.
local owners, sequence_key, index = KEYS[1], KEYS[2], KEYS[3]
local step = cjson.decode(ARGV[1])
local keys = { unpack(KEYS, 4) }
local shelves = load_shelves(keys, step.ids)
local sequence = tonumber(redis.call('GET', sequence_key) or '0')
observe(shelves, step.readings, sequence, owners, step.lease)
if step.session then give_back(shelves, step.session, step.units) end
store_shelves(index, keys, step.ids, shelves)
return tostring(sequence)
