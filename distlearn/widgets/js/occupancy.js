// The twin of distlearn/hardware/occupancy.py.

function roundUp(value, unit) { return Math.ceil(value / unit) * unit; }

function occupancyOf(sm, threads, registers, shared) {
  var warps = Math.ceil(threads / 32), perWarp = roundUp(registers * 32, sm.register_unit);
  var given = roundUp(shared + sm.shared_reserved, sm.shared_unit);
  var byRegisters = null, byShared = null;
  if (perWarp) {
    byRegisters = perWarp * roundUp(warps, sm.subpartitions) > sm.registers ? 0
      : Math.floor(Math.floor(sm.registers / sm.subpartitions / perWarp) * sm.subpartitions / warps);
  }
  if (given) { byShared = given <= sm.shared_bytes ? Math.floor(sm.shared_bytes / given) : 0; }
  var limits = [["warps", Math.floor(sm.warps / warps)], ["registers", byRegisters],
    ["shared", byShared], ["blocks", sm.blocks], ["barriers", sm.barriers]
  ].filter(function (limit) { return limit[1] !== null; });
  var blocks = Math.min.apply(null, limits.map(function (limit) { return limit[1]; }));
  return {
    blocks: blocks, warps: blocks * warps, limits: limits, registers: perWarp * warps,
    shared: given,
    limiter: !blocks ? "cannot launch" : limits.filter(function (limit) {
      return limit[1] === blocks;
    }).map(function (limit) { return limit[0]; }).join(" and ")
  };
}
