"""Compile functions that only compiled code calls without making machine code of each of them.

Numba makes every jitted function ready to be called from Python: it optimises it, with all it calls linked in, emits
machine code, and does the same again for its caller. A tree driver calls some eighty kernels, several levels deep. Here a
kernel is only typed and lowered to LLVM code, which is linked into the entry points that use it and optimised once,
there: a fifth of the time, and the same code in the end.

It leans on Numba's compiler pipeline, which is open to extension, and on its code libraries, which are not; where those look
different, kernels are compiled in the ordinary way.
"""

from numba import njit

try:
    from numba.core.codegen import JITCodeLibrary
    from numba.core.compiler import CompilerBase, DefaultPassBuilder, _LowerResult
    from numba.core.compiler_machinery import register_pass
    from numba.core.typed_passes import NativeLowering

    class LinkedLibrary(JITCodeLibrary):
        """Code that is linked into other libraries, and never run from here."""

        def finalize(self):
            self._raise_if_finalized()
            for library in dict.fromkeys(self._linking_libraries):
                self._reload_init.update(library._reload_init)
                self._final_module.link_in(library._get_module_for_linking(), preserve=True)
            self._finalize_dynamic_globals()
            self._finalized = True

    @register_pass(mutates_CFG=True, analysis_only=False)
    class LinkedLowering(NativeLowering):
        """Lowering to LLVM code, no further."""

        _name = "slidewise_linked_lowering"

        def run_pass(self, state):
            library = LinkedLibrary(state.targetctx.codegen(), state.func_id.func_qualname)
            library.enable_object_caching()
            state.library = library
            flags = state.flags
            flags.no_cpython_wrapper = flags.no_cfunc_wrapper = flags.no_compile = True
            super().run_pass(state)
            lowered = state["cr"]
            name = {}.pop  # callers know compiled functions by their entry points: any builtin that is no other one's will do
            state.targetctx.insert_user_function(name, lowered.fndesc, [library])
            state.reload_init.extend(library._reload_init)
            state["cr"] = _LowerResult(lowered.fndesc, lowered.call_helper, cfunc=name, env=lowered.env)
            return True

    class LinkedCompiler(CompilerBase):
        def define_pipelines(self):
            passes = DefaultPassBuilder.define_nopython_pipeline(self.state)
            passes.passes = [(LinkedLowering if p is NativeLowering else p, what) for p, what in passes.passes]
            passes._finalized = False
            passes.finalize()
            return [passes]

    _known = all(
        hasattr(JITCodeLibrary, name)
        for name in ("_raise_if_finalized", "_get_module_for_linking", "_finalize_dynamic_globals", "enable_object_caching")
    )
    OPTIONS = {"pipeline_class": LinkedCompiler} if _known and "cfunc" in _LowerResult._fields else {}
except (ImportError, AttributeError):  # another Numba: slower to compile, otherwise the same
    OPTIONS = {}


def linked(**options):
    """`njit` for functions that only compiled code calls."""
    return njit(**options, **OPTIONS)
