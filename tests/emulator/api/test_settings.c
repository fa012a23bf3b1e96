/* Wrong values of the environment variables are an error of cuInit that says what is wanted. */
#include "check.h"

#include <sys/wait.h>
#include <unistd.h>

static void fails(const char *name, const char *value, CUresult code, const char *text)
{
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        setenv(name, value, 1);
        RETURNS(code, cuInit(0));
        EXPECT(detail_contains(text));
        exit(finish());
    }
    int status = -1;
    waitpid(child, &status, 0);
    EXPECT(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

int main(void)
{
    if (!on_emulator())
        return finish();
    fails("CUDA_CORE_EMULATOR_DEVICES", "many", CUDA_ERROR_INVALID_VALUE, "a number from 0 to 64");
    fails("CUDA_CORE_EMULATOR_DEVICES", "65", CUDA_ERROR_INVALID_VALUE, "a number from 0 to 64");
    fails("CUDA_CORE_EMULATOR_DEVICES", "0", CUDA_ERROR_NO_DEVICE, "1 to 64 are allowed");
    fails("CUDA_CORE_EMULATOR_MEMORY", "-1", CUDA_ERROR_INVALID_VALUE, "CUDA_CORE_EMULATOR_MEMORY=-1");
    fails("CUDA_CORE_EMULATOR_COMPUTE_CAPABILITY", "8", CUDA_ERROR_INVALID_VALUE, "one of 7.0");
    fails("CUDA_CORE_EMULATOR_COMPUTE_CAPABILITY", "3.5", CUDA_ERROR_INVALID_VALUE, "one of 7.0");
    fails("CUDA_CORE_EMULATOR_COMPUTE_CAPABILITY", "8.6", CUDA_SUCCESS, "");
    return finish();
}
