#!/usr/bin/env bash
# Writes the interval logs of this folder anew: record.sh OUT. Needs a JDK (17 was used) and Maven, which fetches the
# libraries from Maven Central; jaxb-api is what versions before 2.1.9 need beside a JDK later than 8.
set -euo pipefail
out=$(realpath "$1")
here=$(dirname "$(realpath "$0")")
java_sources=$here/../../java
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
start=1700000000000

fetch() {
  mvn -q -B org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy -Dartifact="$1" -DoutputDirectory="$work/jars" >/dev/null
}
fetch javax.xml.bind:jaxb-api:2.3.1

path_of() { echo "$work/jars/HdrHistogram-$1.jar:$work/classes/$1:$work/jars/jaxb-api-2.3.1.jar"; }
bins_of() { java -cp "$(path_of 2.2.2)" Oracle bins "$out/$1.hlog" | gzip -9n >"$out/$1.bins.gz"; }

for version in 2.2.2 2.1.12 2.0.3 1.2.1; do
  fetch "org.hdrhistogram:HdrHistogram:$version"
  mkdir -p "$work/classes/$version"
  sources=("$java_sources/WriteLog.java" "$java_sources/WriteBlobs.java")
  if [[ $version == 2.2.2 ]]; then sources+=("$java_sources/WriteTagged.java" "$java_sources/Oracle.java"); fi
  javac -nowarn -cp "$work/jars/HdrHistogram-$version.jar" -d "$work/classes/$version" "${sources[@]}"
  while read -r name digits lowest highest median; do
    java -cp "$(path_of $version)" WriteLog "$out/$version-$name.hlog" "$digits" "$lowest" 24 200 7 "$highest" $start "$median"
    bins_of "$version-$name"
  done <<'SPECS'
2-digits 2 1 3600000000000 150000
3-digits 3 1 3600000000000 150000
2-digits-lowest-20000 2 20000 3600000000000 800000
3-digits-lowest-1000 3 1000 60000000000 800000
SPECS
  java -cp "$(path_of $version)" WriteBlobs "$work/blobs.hlog" "$work/blobs.bins" 5
  gzip -9n <"$work/blobs.hlog" >"$out/$version-blobs.hlog.gz"
  gzip -9n <"$work/blobs.bins" >"$out/$version-blobs.bins.gz"
done
for form in tagged resized double; do
  java -cp "$(path_of 2.2.2)" WriteTagged "$out/$form.hlog" $form 12 3 $start
  bins_of $form
done
java -cp "$(path_of 2.2.2)" Oracle percentiles "$out/tagged.hlog" 0,1,25,50,75,90,99,99.9,100 | gzip -9n >"$out/tagged.percentiles.gz"
java -cp "$(path_of 2.2.2)" Oracle percentiles "$out/2.1.12-2-digits-lowest-20000.hlog" 0,1,25,50,75,90,99,99.9,100 \
  | gzip -9n >"$out/2.1.12-2-digits-lowest-20000.percentiles.gz"
for name in tagged 2.2.2-2-digits-lowest-20000 2.2.2-3-digits; do
  java -cp "$(path_of 2.2.2)" Oracle hgrm "$out/$name.hlog" 1000 5 | gzip -9n >"$out/$name.hgrm.gz"
  java -cp "$(path_of 2.2.2)" Oracle corrected "$out/$name.hlog" 1000000 | gzip -9n >"$out/$name.corrected.gz"
done
