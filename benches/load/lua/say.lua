-- A visitor says something, under an id of their own as the widget does; ten thousand sessions in turn.

dofile(os.getenv("HOTLINE_LOAD_SCRIPTS") .. "/drive.lua")

local said = 0

function request()
  said = said + 1
  local body = '{"body":"Hello, where is my order? It should have been here on Monday.","clientId":"' .. run .. "-" .. said .. '"}'
  return post("/webchat/sessions/" .. turn(subjects.sessions, said) .. "/messages", body)
end
