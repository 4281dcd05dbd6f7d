"""What tools that make pictures print: ffmpeg, Blender and ComfyUI.

Decides which of their lines tell of frames and prompts. ffmpeg's number is a total that starts
again with each encoding; Blender's is the frame's own number in the film.
"""

from __future__ import annotations

from ouvrage.metering.recognisers.rule import ASKED, BEGIN, CLOSE, COUNT, HEAD, TOTAL, Rule, said

RULES = (
    Rule("ffmpeg", "frame", b"Stream mapping:", said(rb"^Stream mapping:\s*$", BEGIN)),
    Rule("ffmpeg", "frame", b"progress=end", said(rb"^progress=end\s*$", BEGIN)),
    Rule("ffmpeg", "frame", b"frame=", said(rb"^frame=\s*(?P<n>\d{1,12})(?:\s+fps=|\s*$)", TOTAL)),
    # "Fra:3 Mem:12.3M …"; since Blender 5 "00:03.906  render | Fra: 4 | Mem: 6M | …"
    Rule("blender", "frame", b"Fra:",
         said(rb"(?:^|\| )Fra:\s?(?P<n>\d{1,9})\b.*\|", HEAD), gate=b"|"),
    Rule("blender", "frame", b"(Saving: ",
         said(rb"(?:^|\| )\s*Time: [\d:.]+ \(Saving: [\d:.]+\)", CLOSE)),
    Rule("comfyui", "prompt", b"got prompt", said(rb"(?:^|\] |: )got prompt\s*$", ASKED)),
    Rule("comfyui", "prompt", b"Prompt executed in ",
         said(rb"Prompt executed in (?:\d+(?:\.\d+)? seconds|\d\d:\d\d:\d\d)\s*$", COUNT, 1)),
)  # fmt: skip
