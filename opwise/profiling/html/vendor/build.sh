#!/usr/bin/env bash
# Make the vendored files anew from the packages named here: needs npm. VERSIONS.md lists the results.
set -euo pipefail
cd "$(dirname "$0")"

here=$PWD
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cp ./*.entry.js "$work"
cd "$work"
npm init --yes >/dev/null
npm install --silent --no-audit --no-fund --ignore-scripts \
    echarts@6.1.0 tabulator-tables@6.5.3 esbuild@0.28.2
for name in echarts tabulator; do
    npx esbuild "$name.entry.js" --bundle --minify --format=iife --global-name="$name" \
        --target=es2020 --legal-comments=none --charset=ascii --log-level=warning \
        --outfile="$here/$name.min.js"
done
cp node_modules/tabulator-tables/dist/css/tabulator_simple.min.css "$here/tabulator.min.css"
sed -i '/sourceMappingURL/d' "$here/tabulator.min.css"
cp node_modules/echarts/LICENSE "$here/echarts.LICENSE"
cp node_modules/echarts/NOTICE "$here/echarts.NOTICE"
cp node_modules/echarts/licenses/LICENSE-d3 "$here/echarts.d3.LICENSE"
cp node_modules/zrender/LICENSE "$here/zrender.LICENSE"
cp node_modules/tslib/LICENSE.txt "$here/tslib.LICENSE"
cp node_modules/tabulator-tables/LICENSE "$here/tabulator.LICENSE"
cd "$here"
sha256sum ./*.min.js ./*.min.css
grep '"version"' "$work"/node_modules/{echarts,zrender,tslib,tabulator-tables,esbuild}/package.json |
    sed 's,.*node_modules/,,'
