// The parts of Tabulator that the tables need; build.sh makes tabulator.min.js of it.
import Tabulator from "tabulator-tables/src/js/core/Tabulator.js";
import FilterModule from "tabulator-tables/src/js/modules/Filter/Filter.js";
import FormatModule from "tabulator-tables/src/js/modules/Format/Format.js";
import FrozenColumnsModule from "tabulator-tables/src/js/modules/FrozenColumns/FrozenColumns.js";
import InteractionModule from "tabulator-tables/src/js/modules/Interaction/Interaction.js";
import ResizeColumnsModule from "tabulator-tables/src/js/modules/ResizeColumns/ResizeColumns.js";
import ResizeTableModule from "tabulator-tables/src/js/modules/ResizeTable/ResizeTable.js";
import SortModule from "tabulator-tables/src/js/modules/Sort/Sort.js";

Tabulator.registerModule([
  FilterModule,
  FormatModule,
  FrozenColumnsModule,
  InteractionModule,
  ResizeColumnsModule,
  ResizeTableModule,
  SortModule,
]);

export { Tabulator };
