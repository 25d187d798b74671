-- One ticket; ten thousand in turn, all of them hot.

dofile(os.getenv("HOTLINE_LOAD_SCRIPTS") .. "/drive.lua")

local read = 0

function request()
  read = read + 1
  return get("/tickets/" .. ticket(read))
end
