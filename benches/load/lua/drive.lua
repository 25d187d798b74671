-- What every script shares: the requests' fixed parts, the pace, and the report.
--
-- HOTLINE_LOAD_SUBJECTS  a Lua file with the ids to work on, the token and the host
-- HOTLINE_LOAD_PREFIX    what stands before every path: /api/v1 of Hotline, or a yardstick's
-- HOTLINE_LOAD_RUN       a number no other run of this process has: keys and client ids are made of it
-- HOTLINE_LOAD_RATE      requests a second; without it each connection asks as soon as it was answered
--
-- `request` builds its text by hand, and no script defines `response`: what the generator takes of the two cores is
-- taken from all that is measured.

local ffi = require("ffi")
ffi.cdef [[ typedef struct { long s; long ns; } load_time; int clock_gettime(int clock, load_time *time); ]]
local time = ffi.new("load_time")
local MONOTONIC = 1

local function now()
  ffi.C.clock_gettime(MONOTONIC, time)
  return tonumber(time.s) + tonumber(time.ns) / 1e9
end

subjects = dofile(os.getenv("HOTLINE_LOAD_SUBJECTS"))
run = os.getenv("HOTLINE_LOAD_RUN")

-- A paragraph of 200 characters: what an agent writes.
text = "Good morning! Your order left our warehouse today and will arrive on Friday between nine and noon. "
  .. "Should nobody be at home, the driver leaves it with a neighbour and a note in the letter box. Thank you."

local prefix = os.getenv("HOTLINE_LOAD_PREFIX")
local head, json_head
local heads, json_heads = {}, {}

-- Speaks for the company with this key from here on.
local function speak_for(key)
  if not heads[key] then
    heads[key] = " HTTP/1.1\r\nHost: " .. subjects.host .. "\r\nAuthorization: Bearer " .. key .. "\r\n"
    json_heads[key] = heads[key] .. "Content-Type: application/json\r\nContent-Length: "
  end
  head, json_head = heads[key], json_heads[key]
end
speak_for(subjects.key)

function get(path)
  return "GET " .. prefix .. path .. head .. "\r\n"
end

function post(path, body, headers)
  return "POST " .. prefix .. path .. json_head .. #body .. "\r\n" .. (headers or "") .. "\r\n" .. body
end

-- Subject number `n` of a list, from the start again when they are through.
function turn(list, n)
  return list[n % #list + 1]
end

-- Ticket number `n`, from the start again when they are through. Where they are of many companies, that one is spoken for.
function ticket(n)
  if subjects.keys then
    speak_for(turn(subjects.keys, n))
  end
  return turn(subjects.tickets, n)
end

-- Nothing is left to ask for: the clock of this run stops before its time. What is asked for still is not counted.
function finish()
  if not ended then
    ended = now()
    wrk.thread:stop()
  end
  return "GET /health/live" .. head .. "\r\n"
end

function init()
  math.randomseed(tonumber(run))
  began = now()
end

-- Arrivals as if from many who do not know of each other: the gaps between them are exponential. A connection that is
-- free takes the next arrival and waits for it; one that is late goes at once.
local rate = tonumber(os.getenv("HOTLINE_LOAD_RATE") or "")
if rate then
  local due = now()
  function delay()
    due = due - math.log(1 - math.random()) / rate
    return math.max(0, math.floor((due - now()) * 1000 + 0.5))
  end
end

-- wrk runs `setup` and `done` in one state, all else in the thread's own.
function setup(thread)
  worker = thread
end

function done(summary, latency)
  local ended = worker:get("ended")
  local seconds = ended and ended - worker:get("began") or summary.duration / 1e6
  local errors = summary.errors
  io.write(string.format(
    '\nLOAD {"requests":%d,"seconds":%.6f,"bytes":%d,"p50_us":%d,"p95_us":%d,"p99_us":%d,"max_us":%d,' ..
    '"errors":{"status":%d,"connect":%d,"read":%d,"write":%d,"timeout":%d}}\n',
    summary.requests, seconds, summary.bytes, latency:percentile(50), latency:percentile(95), latency:percentile(99),
    latency.max,
    errors.status, errors.connect, errors.read, errors.write, errors.timeout))
end
