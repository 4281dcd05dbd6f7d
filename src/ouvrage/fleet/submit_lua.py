"""``job_submit.lua``: jobs that can never run here are refused when they are submitted, in our words.

Decides which those are: more GPUs on one node than any node has, a type of GPU that there is none of, more in all than the fleet
has, an account that the owner refuses. Slurm would keep such a job in its queue for ever, or say "Invalid account". What is only
busy now is not refused. The form is that of https://slurm.schedmd.com/job_submit_plugins.html.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ouvrage.fleet.shape import groups, types_of
from ouvrage.model.bringup import FleetMember
from ouvrage.model.work import Named


def job_submit_lua(members: Sequence[FleetMember], refused: Sequence[Named]) -> str:
    """The script for these members and refused accounts."""
    most: dict[str, int] = {}
    for member in members:
        for name, found in groups(member):
            most[name] = max(most.get(name, 0), len(found))
    values = {
        "MOST": str(max((len(member.gpus) for member in members), default=0)),
        "ALL": str(sum(len(member.gpus) for member in members)),
        "MOST_OF": _table(most),
        "ALL_OF": _table(types_of(members)),
        "REFUSED": _table({each.name: _text(each.value) for each in refused}),
    }
    head = "\n".join(f"local {name} = {value}" for name, value in values.items())
    return _SCRIPT.replace("HEAD", head)


def _table(values: Mapping[str, int | str]) -> str:
    rows = ", ".join(f"[{_text(name)}] = {value}" for name, value in sorted(values.items()))
    return "{ " + rows + " }" if rows else "{}"


def _text(words: str) -> str:
    """A text as Lua writes it, whatever stands in it: every byte but plain letters and signs as its number."""
    plain = b" ,.;:()/%-_+=!?"
    return '"' + "".join(
        chr(b) if b < 128 and (chr(b).isalnum() or b in plain) else f"\\{b:03d}"
        for b in words.encode("utf-8")
    ) + '"'  # fmt: skip


_SCRIPT = """\
-- Written by ouvrage fleet. Jobs that can never run here are refused when they are submitted.
HEAD

local function asked(text)
  -- "gres:gpu:h100:4", "gres/gpu=4", "gpu:4,gpu:a100:2" -> rows of {type or nil, count}
  local found = {}
  for each in string.gmatch(text or "", "[^,]+") do
    local words = string.match(string.gsub(each, "^gres[:/]", ""), "^gpu(.*)$")
    if words ~= nil and (words == "" or string.match(words, "^[:/=]")) then
      local count = tonumber(string.match(words, "[:=](%d+)$")) or 1
      local kind = string.match(words, "^[:/]([%a][%w_%-]*)")
      table.insert(found, { kind, count })
    end
  end
  return found
end

local function there_are()
  local names = {}
  for name, count in pairs(ALL_OF) do table.insert(names, name .. " (" .. count .. ")") end
  table.sort(names)
  return #names > 0 and table.concat(names, ", ") or "no GPUs"
end

local function why_not(text, whole)
  -- nil where that many GPUs can be had, on one node or (whole) in the fleet
  local sum = 0
  for _, each in ipairs(asked(text)) do
    local kind, count = each[1], each[2]
    sum = sum + count
    if kind ~= nil and ALL_OF[kind] == nil then
      return "there is no GPU " .. kind .. " here; there are " .. there_are()
    end
    local most = whole and ALL_OF[kind] or MOST_OF[kind]
    if kind ~= nil and count > most then
      return count .. " GPUs " .. kind .. (whole and " were asked for, the fleet has " or " on one node were asked for, the largest has ") .. most
    end
  end
  local most = whole and ALL or MOST
  if sum > most then
    return sum .. (whole and " GPUs were asked for, the fleet has " or " GPUs on one node were asked for, the largest has ") .. most
  end
  return nil
end

local function judge(job)
  local account = job.account or job.default_account
  local refused = account ~= nil and REFUSED[account] or nil
  if refused ~= nil then return refused end
  return why_not(job.tres_per_node, false) or why_not(job.tres_per_task, false) or why_not(job.tres_per_socket, false)
    or why_not(job.tres_per_job, true)
end

function slurm_job_submit(job_desc, part_list, submit_uid)
  local why = judge(job_desc)
  if why ~= nil then
    slurm.log_user("ouvrage: " .. why)
    return slurm.ERROR
  end
  return slurm.SUCCESS
end

function slurm_job_modify(job_desc, job_rec, part_list, modify_uid)
  return slurm_job_submit(job_desc, part_list, modify_uid)
end

return slurm.SUCCESS
"""
