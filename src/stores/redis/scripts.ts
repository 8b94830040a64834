import { createHash } from "node:crypto";

/*
 * All keys of a run, and of the indexes that list it, begin with one hash tag, which is the only key that
 * a script is given: `{waymark:0}`. So they are in one slot of a cluster, and a script changes the run and
 * its index entries in one step that no crash can fall into. On a single server there is one tag; in a
 * cluster there are several, a run always has the same one, and a listing merges what each of them has.
 *
 *   TAG:run:RUN            hash: where the run is, who has claimed it
 *   TAG:entries:RUN        hash: sequence → "BASE BYTES ID\nHEADER"; -sequence if it was set aside
 *   TAG:contents:RUN       hash: sequence → the SHA-256 and the content
 *   TAG:checkpoint:ID      string: the run that has this checkpoint
 *   TAG:all                set of runs
 *   TAG:status:STATUS      sorted set of runs by the time of their last save
 *   TAG:graph:GRAPH:STATUS the same of one graph
 *   TAG:expiring           sorted set of finished runs by when they expire
 *   TAG:graphs             hash: fingerprint → topology
 *
 * A run that expires takes its keys along; its index entries are passed over from then on, and removed by
 * a later save.
 */

/** A script, and the hash to call it by. */
export interface Script {
  readonly text: string;
  readonly sha1: string;
}

const KEYS = `
local tag = KEYS[1]
local function key(kind, name) return tag .. ':' .. kind .. ':' .. name end
local function byGraph(graph, status) return key('graph', graph .. ':' .. status) end
`;

const NOW = `
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local function num(n) return string.format('%.0f', n) end
`;

/** What is done to each key that a run has of its own. */
const OWN_KEYS = `
local function each(runId, command, ...)
  for _, entry in ipairs(redis.call('HVALS', key('entries', runId))) do
    redis.call(command, key('checkpoint', string.match(entry, '^%d+ %d+ (.-)\\n') or ''), ...)
  end
  for _, kind in ipairs({'run', 'entries', 'contents'}) do redis.call(command, key(kind, runId), ...) end
end
`;

const EXPIRE = `
local function expire(runId, ttl, status, graph)
  each(runId, 'PEXPIRE', ttl)
  redis.call('ZADD', tag .. ':expiring', num(now + ttl), cjson.encode({runId, status, graph}))
end
`;

const texts = {
  /** The fence and the write. Gives what the run's first checkpoint is called, or, if nothing was written, where the run is. */
  save: `${KEYS}${NOW}${OWN_KEYS}${EXPIRE}
local runId, after, afterId, epoch, lease, sequence, id, graph, status, savedAt, entry, content, ttl = unpack(ARGV)
local hash = key('run', runId)
local run = redis.call('HMGET', hash, 'sequence', 'id', 'epoch', 'owner', 'status', 'graph', 'born', 'until')
if (run[1] or '0') ~= after or (afterId ~= '' and (run[2] or '""') ~= afterId) or (epoch ~= '' and run[3] ~= epoch) then
  return {run[1] or '0', run[2] or '""', run[3] or '', run[4] or ''}
end
local fields = {'sequence', sequence, 'id', id}
local function set(name, value) fields[#fields + 1] = name; fields[#fields + 1] = value end
local isMoved = run[5] ~= status or run[6] ~= graph
if not run[7] then
  set('born', id)
  redis.call('SADD', tag .. ':all', runId)
end
if isMoved then
  if run[5] then
    redis.call('ZREM', key('status', run[5]), runId)
    redis.call('ZREM', byGraph(run[6], run[5]), runId)
  end
  set('status', status)
  set('graph', graph)
end
if epoch ~= '' and run[8] then set('until', num(now + lease)) end
redis.call('HSET', hash, unpack(fields))
redis.call('HSET', key('entries', runId), sequence, entry)
redis.call('HSET', key('contents', runId), sequence, content)
redis.call('ZADD', key('status', status), savedAt, runId)
redis.call('ZADD', byGraph(graph, status), savedAt, runId)
redis.call('SET', key('checkpoint', id), runId)
if ttl ~= '' then
  redis.call('HSET', hash, 'ttl', ttl)
  expire(runId, ttl, status, graph)
  for _, member in ipairs(redis.call('ZRANGEBYSCORE', tag .. ':expiring', '-inf', num(now), 'LIMIT', 0, 100)) do
    local gone = cjson.decode(member)
    redis.call('ZREM', tag .. ':expiring', member)
    if redis.call('EXISTS', key('run', gone[1])) == 0 then
      redis.call('SREM', tag .. ':all', gone[1])
      redis.call('ZREM', key('status', gone[2]), gone[1])
      redis.call('ZREM', byGraph(gone[3], gone[2]), gone[1])
    end
  end
elseif isMoved then
  redis.call('HDEL', hash, 'ttl')
  each(runId, 'PERSIST')
end
return run[7] or id`,

  /** The newest record below a sequence, or that very one, after all that it builds on; and where the run is. */
  chain: `${KEYS}
local runId, bound, isExact = ARGV[1], tonumber(ARGV[2]), ARGV[3] == '1'
local entries = key('entries', runId)
local head = redis.call('HMGET', key('run', runId), 'sequence', 'id')
if not head[1] then return false end
local function has(n) return redis.call('HEXISTS', entries, string.format('%.0f', n)) == 1 end
local at
if isExact then
  if has(bound) then at = bound end
elseif tonumber(head[1]) < bound and has(tonumber(head[1])) then
  at = tonumber(head[1])
else
  for _, field in ipairs(redis.call('HKEYS', entries)) do
    local n = tonumber(field) or 0
    if n > 0 and n < bound and n > (at or 0) then at = n end
  end
end
local found = {head[1], head[2]}
if not at then return found end
local base = tonumber(string.match(redis.call('HGET', entries, string.format('%.0f', at)), '^(%d+) ')) or at
for n = base, at do
  local sequence = string.format('%.0f', n)
  local entry = redis.call('HGET', entries, sequence)
  if entry then
    found[#found + 1] = sequence
    found[#found + 1] = entry
    found[#found + 1] = redis.call('HGET', key('contents', runId), sequence) or ''
  end
end
return found`,

  headers: `${KEYS} return redis.call('HGETALL', key('entries', ARGV[1]))`,

  records: `${KEYS}
local found = {}
for _, field in ipairs(redis.call('HKEYS', key('entries', ARGV[1]))) do
  local n = tonumber(field) or 0
  if n > 0 and n >= tonumber(ARGV[2]) and n <= tonumber(ARGV[3]) then
    found[#found + 1] = field
    found[#found + 1] = redis.call('HGET', key('entries', ARGV[1]), field)
    found[#found + 1] = redis.call('HGET', key('contents', ARGV[1]), field) or ''
  end
end
return found`,

  /** What distinguishes a run from a later one with its id, where it is, and who has claimed it. */
  look: `${KEYS}${NOW}
local run = redis.call('HMGET', key('run', ARGV[1]), 'born', 'sequence', 'until', 'epoch', 'owner')
if not run[1] then return false end
local isClaimed = run[3] and tonumber(run[3]) > now
return {run[1], run[2], isClaimed and '1' or '0', run[4] or '', run[5] or ''}`,

  setAside: `${KEYS}
local runId, born, sequence = unpack(ARGV)
local entry = redis.call('HGET', key('entries', runId), sequence)
if not entry or redis.call('HGET', key('run', runId), 'born') ~= born then return 0 end
for _, kind in ipairs({'entries', 'contents'}) do
  local value = redis.call('HGET', key(kind, runId), sequence)
  redis.call('HSET', key(kind, runId), '-' .. sequence, value or '')
  redis.call('HDEL', key(kind, runId), sequence)
end
redis.call('DEL', key('checkpoint', string.match(entry, '^%d+ %d+ (.-)\\n') or ''))
return 1`,

  discard: `${KEYS}
local runId, born = ARGV[1], ARGV[2]
if redis.call('HGET', key('run', runId), 'born') ~= born then return 0 end
for i = 3, #ARGV do
  local entry = redis.call('HGET', key('entries', runId), ARGV[i])
  if entry then
    redis.call('DEL', key('checkpoint', string.match(entry, '^%d+ %d+ (.-)\\n') or ''))
    redis.call('HDEL', key('entries', runId), ARGV[i])
    redis.call('HDEL', key('contents', runId), ARGV[i])
  end
end
return 1`,

  /** Removes a run, but not the claim on it. Gives its owner if that is no longer who asks. */
  remove: `${KEYS}${NOW}${OWN_KEYS}
local runId, born, sequence, unclaimed, epoch = unpack(ARGV)
local hash = key('run', runId)
local run = redis.call('HMGET', hash, 'born', 'sequence', 'until', 'epoch', 'owner', 'status', 'graph')
if run[1] ~= born or (sequence ~= '' and run[2] ~= sequence) then return 0 end
local left = (tonumber(run[3] or '') or 0) - now
if unclaimed == '1' and left > 0 then return 0 end
if epoch ~= '' and run[4] ~= epoch then return run[5] or '' end
each(runId, 'UNLINK')
if left > 0 then
  redis.call('HSET', hash, 'until', run[3], 'epoch', run[4], 'owner', run[5])
  redis.call('PEXPIRE', hash, num(left))
end
redis.call('SREM', tag .. ':all', runId)
redis.call('ZREM', key('status', run[6]), runId)
redis.call('ZREM', byGraph(run[7], run[6]), runId)
return 1`,

  /** An epoch is the time of the server or more, so that none comes again, whatever the server has lost or removed. */
  claim: `${KEYS}${NOW}${OWN_KEYS}
local runId, owner, ttl = unpack(ARGV)
local hash = key('run', runId)
local run = redis.call('HMGET', hash, 'until', 'owner', 'epoch', 'sequence')
if run[1] and tonumber(run[1]) > now and run[2] ~= owner then return false end
local epoch = num(math.max((tonumber(run[3] or '') or 0) + 1, time[1] * 1000000 + time[2]))
redis.call('HSET', hash, 'epoch', epoch, 'owner', owner, 'until', num(now + ttl))
if run[4] then each(runId, 'PERSIST') else redis.call('PEXPIRE', hash, ttl) end
return epoch`,

  renew: `${KEYS}${NOW}
local runId, epoch, ttl = unpack(ARGV)
local hash = key('run', runId)
local run = redis.call('HMGET', hash, 'epoch', 'until', 'sequence')
if run[1] ~= epoch or not run[2] then return 0 end
redis.call('HSET', hash, 'until', num(now + ttl))
if not run[3] then redis.call('PEXPIRE', hash, ttl) end
return 1`,

  /** A run that nobody saved is then not there at all. */
  release: `${KEYS}${NOW}${OWN_KEYS}${EXPIRE}
local runId, epoch = unpack(ARGV)
local hash = key('run', runId)
local run = redis.call('HMGET', hash, 'epoch', 'sequence', 'ttl', 'status', 'graph')
if run[1] ~= epoch then return 0 end
if not run[2] then return redis.call('DEL', hash) end
redis.call('HDEL', hash, 'until')
if run[3] then expire(runId, run[3], run[4], run[5]) end
return 1`,

  /** Ends the claim of an owner, if it still has it. */
  evict: `${KEYS}
local hash = key('run', ARGV[1])
if redis.call('HGET', hash, 'owner') ~= ARGV[2] then return 0 end
return redis.call('HDEL', hash, 'until')`,

  holder: `${KEYS}${NOW}
local run = redis.call('HMGET', key('run', ARGV[1]), 'until', 'owner')
return run[1] and tonumber(run[1]) > now and run[2]`,

  /** The next runs of some sorted sets, newest save first, each with what is known of it. */
  runs: `${KEYS}
local most, max, last, lastRun = tonumber(ARGV[1]), ARGV[2], tonumber(ARGV[3]), ARGV[4]
local found = {}
for i = 5, #ARGV do
  local left, offset = most, 0
  repeat
    local page = redis.call('ZREVRANGEBYSCORE', tag .. ':' .. ARGV[i], max, '-inf', 'WITHSCORES', 'LIMIT', offset, most)
    for at = 1, #page, 2 do
      local runId, score = page[at], tonumber(page[at + 1])
      local isPast = score == last and runId >= lastRun
      if left > 0 and not isPast and redis.call('HEXISTS', key('run', runId), 'sequence') == 1 then
        found[#found + 1] = {runId, score}
        left = left - 1
      end
    end
    offset = offset + most
  until left == 0 or #page < 2 * most
end
table.sort(found, function(a, b) if a[2] ~= b[2] then return a[2] > b[2] end return a[1] > b[1] end)
local listed = {}
for i = 1, math.min(most, #found) do
  local runId, score = unpack(found[i])
  local run = redis.call('HMGET', key('run', runId), 'sequence', 'status', 'graph')
  local entries = key('entries', runId)
  local entry = redis.call('HGET', entries, run[1]) or redis.call('HGET', entries, '-' .. run[1]) or ''
  listed[i] = {runId, string.format('%.0f', score), run[1], run[2], run[3], entry}
end
return listed`,

  run: `${KEYS}
local run = redis.call('HMGET', key('run', ARGV[1]), 'sequence', 'status', 'graph')
if not run[1] then return {} end
local score = redis.call('ZSCORE', key('status', run[2]), ARGV[1]) or '0'
local entries = key('entries', ARGV[1])
local entry = redis.call('HGET', entries, run[1]) or redis.call('HGET', entries, '-' .. run[1]) or ''
return {{ARGV[1], score, run[1], run[2], run[3], entry}}`,

  /** Some of the runs, after the cursor of the next; "0" is the last. */
  list: `${KEYS}
local page = redis.call('SSCAN', tag .. ':all', ARGV[1], 'COUNT', 1000)
local found = {page[1]}
for _, runId in ipairs(page[2]) do
  if redis.call('HEXISTS', key('run', runId), 'sequence') == 1 then found[#found + 1] = runId end
end
return found`,

  find: `${KEYS} return redis.call('GET', key('checkpoint', ARGV[1]))`,
  saveGraph: `return redis.call('HSETNX', KEYS[1] .. ':graphs', ARGV[1], ARGV[2])`,
  graph: `return redis.call('HGET', KEYS[1] .. ':graphs', ARGV[1])`,
  /** A write, so that what waits for those of this connection waits for all before it. */
  touch: `return redis.call('SET', KEYS[1] .. ':touched', '1')`,
  facts: `
local found = {}
for i, section in ipairs({'server', 'persistence', 'replication', 'memory', 'cluster'}) do
  found[i] = redis.call('INFO', section)
end
return table.concat(found, '\\n')`,
} as const;

function made<K extends string>(all: Readonly<Record<K, string>>): Readonly<Record<K, Script>> {
  const entries = Object.entries<string>(all).map(([name, text]) => {
    return [name, { text, sha1: createHash("sha1").update(text).digest("hex") }];
  });
  return Object.fromEntries(entries) as Record<K, Script>;
}

/** The scripts of a store. */
export const scripts = made(texts);
